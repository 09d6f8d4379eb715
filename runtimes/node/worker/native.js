// The addon. `package.sh` puts it beside `bootstrap.js`.
"use strict";

module.exports = require("../hearth_node.node");
