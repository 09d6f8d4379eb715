// The addon. `package.sh` lays it beside `bootstrap.js`.
"use strict";

module.exports = require("../hearth_node.node");
