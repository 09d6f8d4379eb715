"""The Python side of a Hearth worker: what runs around a function's own code.

`template` boots, imports the function and forks; `instance` is what a fork does. The other modules
have one job each. Modules are few and small on purpose: every page mapped here is paid for again by
every fork.
"""
