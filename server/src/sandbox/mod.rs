//! Sandboxes: made once per function version by a thread of its own, reached by typed messages and passed descriptors.
