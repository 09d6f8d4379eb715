#!/usr/bin/env bash
# Counts Hearth's own lines of code by the process that runs them with privileges: without tests, comments and blank lines.
# `server/docs/privileges.md` has the figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# What follows `#[cfg(test)]` is left out: the rest of the file if it is the module of tests, else one item.
count() {
  awk '
    FNR == 1 { skips = "" }
    skips == "file" { next }
    /^[[:space:]]*#\[cfg\(test\)\]/ { skips = "next"; next }
    skips == "next" { skips = /^mod tests/ ? "file" : /;$/ ? "" : "item"; next }
    skips == "item" { if (/^}/) skips = ""; next }
    /^[[:space:]]*$/ || /^[[:space:]]*\/\// { next }
    { lines++ }
    END { print lines + 0 }
  ' "$@"
}

sources() {
  find host/src -name '*.rs' "$@"
}

# The others' side: these run in `hearth serve` and in `hearth gateway`, until they have dropped their privileges.
readonly OTHERS='host/src/process/(server|lock_down|internet_sockets|privileges|filter)\.rs'
# What the host process shares with hearth-init, and a priority that it shares with instances.
readonly SHARED=(runtimes/init/src/{lib,fields,wire,criu}.rs runtimes/abi/src/time_slice.rs)

mapfile -t serving < <(sources -not -path '*/prepare/*' | grep -vE "$OTHERS")
mapfile -t preparing < <(sources -path '*/prepare/*')
mapfile -t dropping < <(sources | grep -E "$OTHERS")
mapfile -t gateway < <(find gateway/src -name '*.rs')

printf '%6d  hearth host: host/, while there is a server\n' "$(count "${serving[@]}")"
printf '%6d  hearth host: shared with hearth-init and instances\n' "$(count "${SHARED[@]}")"
printf '%6d  hearth: host/src/prepare, before there is a server\n' "$(count "${preparing[@]}")"
# Of the crate for eBPF, what loads and attaches the ingress.
printf '%6d  hearth: ebpf/src, before there is a server\n' \
  "$(count ebpf/src/{ingress,maps}/*.rs ebpf/src/{programs,link,interfaces,records,report}.rs)"
printf '%6d  hearth: server/src/bin/hearth, before and after\n' "$(count server/src/bin/hearth/{main,host,ingress}.rs)"
printf '%6d  hearth serve, hearth gateway: dropping their privileges\n' "$(count "${dropping[@]}")"
printf '%6d  hearth gateway: gateway/, with CAP_NET_ADMIN, but for what it opens before it drops root\n' "$(count "${gateway[@]}")"
