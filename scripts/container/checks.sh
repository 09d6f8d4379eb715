#!/usr/bin/env bash
# What a user relies on when Hearth runs by docker-compose.yml. scripts/container.sh starts it, in namespaces of its own:
# it is the host of the containers, in which nothing else runs.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
source scripts/tap.sh

# The containers' network has addresses that are public, because those are what a policy is about; the real ones cannot be
# reached from here.
readonly NETWORK=93.184.216.0/24 NETWORK6=2606:2800:220:1::/64
readonly WEB=93.184.216.34 WEB6=2606:2800:220:1::34 OTHER=93.184.216.99 HOST=93.184.216.1
# As compose names it.
readonly NAME=hearth_hearth_1

(($$ == 1)) || die "scripts/container.sh starts this, in namespaces of its own"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
exec 3>&1
# What podman says is shown only on demand.
readonly LOG=$TOOLS/container/run.log
: >"$LOG"

GRACE=$(sed -n 's/^ *stop_grace_period: \([0-9]*\)s$/\1/p' docker-compose.yml)
readonly GRACE

# Debian 12's podman-compose drops `stop_grace_period` and `cgroup`, and stops with 1 s of grace: it is told here.
compose() {
  podman-compose --project-name hearth "--podman-run-args=--stop-timeout=$GRACE --cgroupns=host" "$@" >>"$LOG" 2>&1
}

down() { compose down --timeout "$GRACE" "$@"; }

# api PATH [CURL'S ARGUMENTS...]
api() {
  curl --silent --show-error --fail-with-body --max-time 60 --header "Authorization: Bearer $TOKEN" "${@:2}" \
    "http://127.0.0.1:$PORT$1"
}

# call FUNCTION EVENT
call() { api "/api/v1/functions/$1/invoke" --data "$2"; }

# is EXPECTED COMMAND...: COMMAND prints just that.
is() {
  local expected=$1 said
  shift
  said=$("$@" 2>&1) || true
  [[ $said == "$expected" ]] || {
    echo "# expected $expected, got $said" >&3
    return 1
  }
}

# soon COMMAND...: within a minute.
soon() {
  local end=$((SECONDS + 60))
  until "$@" >>"$LOG" 2>&1 3>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

# Where systemd runs, it would call the health check; here nobody else does.
healthy() {
  soon podman healthcheck run "$NAME" >>"$LOG" 2>&1 &&
    is healthy podman inspect --format '{{.State.Health.Status}}' "$NAME"
}

token_is_in_the_log() {
  TOKEN=$(podman logs "$NAME" 2>&1 | sed -n 's/^ *token *\(hth_[^ ]*\)$/\1/p' | head -n 1)
  [[ -n $TOKEN ]]
}

# deploy NAME RUNTIME FILE [ARGUMENT...]
deploy() {
  api /api/v1/functions --output "$scratch/deployed" --form "name=$1" --form "runtime=$2" --form "code=@$scratch/$3" "${@:4}" || {
    echo "# $(cat "$scratch/deployed")" >&3
    return 1
  }
}

cat >"$scratch/hello.py" <<'PY'
def handler(event, context):
    return "hello " + event["name"]
PY
cat >"$scratch/node.mjs" <<'JS'
export const handler = async (event) => "hello " + event.name;
JS
cat >"$scratch/slow.py" <<'PY'
import time

def handler(event, context):
    time.sleep(event["seconds"])
    return "slept"
PY
cat >"$scratch/fetch.py" <<'PY'
import errno, urllib.request

def handler(event, context):
    try:
        with urllib.request.urlopen(event["url"], timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.URLError as error:
        number = getattr(error.reason, "errno", None)
        return errno.errorcode.get(number, type(error.reason).__name__)
PY
# A web server that says which address was reached.
cat >"$scratch/web.py" <<'PY'
import http.server, socket

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("reached " + self.request.getsockname()[0].removeprefix("::ffff:")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

Server(("::", 80), Answer).serve_forever()
PY

# namespaces: the network and process namespaces of everything here.
namespaces() { lsns --noheadings --output NS --type net && lsns --noheadings --output NS --type pid; }

# cgroups: the container's, with what Hearth makes below.
cgroups() {
  find /sys/fs/cgroup -type d -path "*/libpod-$(podman inspect --format '{{.Id}}' "$NAME")*" 2>/dev/null || true
}

# The host of the containers: podman's locks, names of networks and sockets are seen here only.
resolvers=$(cat /etc/resolv.conf)
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
if [[ ! -e /etc/resolv.conf ]]; then
  mkdir -p "$(dirname "$(readlink -m /etc/resolv.conf)")"
  echo "$resolvers" >/etc/resolv.conf
fi
ip link set lo up
# What a run that was killed has left in podman's database.
podman rm --all --force --volumes >>"$LOG" 2>&1
podman volume prune --force >>"$LOG" 2>&1
NAMESPACES_BEFORE=$(namespaces)
readonly NAMESPACES_BEFORE
podman network create --label io.podman.compose.project=hearth --subnet "$NETWORK" --ipv6 --subnet "$NETWORK6" \
  hearth_default >>"$LOG" 2>&1

# web NAME ADDRESS ADDRESS6: a server on the network, whose name the engine's DNS server knows.
web() {
  podman run --detach --name "$1" --network hearth_default --ip "$2" --ip6 "$3" --network-alias "$1.example.com" \
    --volume "$scratch/web.py:/web.py:ro" --entrypoint /usr/bin/python3 --no-healthcheck localhost/hearth /web.py >>"$LOG" 2>&1
}

on_the_network() {
  web web "$WEB" "$WEB6" && web other "$OTHER" 2606:2800:220:1::99 &&
    soon podman exec "$NAME" /usr/bin/python3 -c \
      "import urllib.request as u; [u.urlopen('http://'+h, timeout=2) for h in ('web.example.com', '$OTHER', '[$WEB6]')]" 2>>"$LOG"
}

serves() { is '"hello Ada"' call hello '{"name":"Ada"}' && is '"hello Ada"' call node '{"name":"Ada"}'; }

FIRST=
invoke_first() {
  FIRST=$(api /api/v1/functions/hello/invoke --data '{"name":"first"}' --output /dev/null --write-out '%header{x-hearth-invocation-id}')
  [[ -n $FIRST ]] && is first_is_there first_is_there
}

first_is_there() { api "/api/v1/invocations/$FIRST" | grep -q '"status":"succeeded"' && echo first_is_there; }

# The first call's record is written within 0.1 s.
everything_is_kept() { serves && soon is first_is_there first_is_there; }

restarted() { compose restart --timeout "$GRACE" && healthy && everything_is_kept; }

# Another port, too.
recreated() {
  down && is "" podman ps --all --quiet --filter "name=$NAME" || return
  PORT=9090
  HEARTH_PORT=$PORT compose up --detach --no-build && healthy && everything_is_kept
}

# kill -9: compose's `restart` starts it again.
restarts_after_a_crash() {
  local before
  before=$(podman inspect --format '{{.State.Pid}}' "$NAME")
  kill -KILL "$before"
  soon is_not "$before" podman inspect --format '{{.State.Pid}}' "$NAME" && healthy && everything_is_kept
}

is_not() { ! is "$1" "${@:2}" 3>/dev/null; }

# drains SECONDS STATUS: `compose stop` while a call of that length runs; the call's HTTP status, and the end in time.
drains() {
  local seconds=$1 status=$2 began caller
  api /api/v1/functions/slow/invoke --data "{\"seconds\":$seconds}" --output "$scratch/slow" \
    --write-out '%{http_code}' >"$scratch/status" 2>/dev/null &
  caller=$!
  soon busy || return
  began=$SECONDS
  compose stop --timeout "$GRACE" || return
  wait "$caller" || true
  echo "# the container ended after $((SECONDS - began)) s, the call with $(cat "$scratch/status")" >&3
  is "$status" cat "$scratch/status" && is "0 false" podman inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' "$NAME" &&
    ((SECONDS - began <= GRACE)) || return
  [[ $status != 200 ]] || is '"slept"' cat "$scratch/slow"
}

busy() { api /api/v1/functions/slow | grep -q '"busy":1'; }

# What is left once the container has stopped: of processes, only this script and what podman keeps beside the web servers.
nothing_is_left() {
  soon gone || {
    {
      echo "# left:"
      ps -eo pid,ppid,args
      cgroups
      lsns
    } >&3
    return 1
  }
}

gone() {
  [[ -z $(pgrep --full '/opt/hearth|hearth-init|hearth (serve|gateway)') && -z $(cgroups) && $(namespaces) == "$NAMESPACES_BEFORE" ]]
}

# address: the container's own.
address() { podman inspect --format '{{(index .NetworkSettings.Networks "hearth_default").IPAddress}}' "$NAME"; }

# reaches_from FUNCTION HOST ADDRESS
reaches_from() { is "\"reached $3\"" call "$1" "{\"url\":\"http://$2/\"}"; }
reaches() { reaches_from fetch "$@"; }
# refused FUNCTION ERROR HOST
refused() { is "\"$2\"" call "$1" "{\"url\":\"http://$3/\"}"; }

# refusals_are_told ADDRESS...: by the policy's rules, and not by the other side. The kernel tells of several at once.
refusals_are_told() {
  local address told
  for address in "$@"; do
    for _ in {1..20}; do
      told=$(api /api/v1/functions/fetch/network) || return 1
      [[ $told != *"\"$address\""* ]] || continue 2
      sleep 0.5
    done
    echo "# $address is missing in $told" >&3
    return 1
  done
}

removed() { down --volumes && is "" podman ps --all --quiet && is "" podman volume ls --quiet; }

PORT=8080
check "compose up" compose up --detach --no-build
check "the container becomes healthy" healthy
check "the log shows the admin token" token_is_in_the_log
check "a Python function is deployed" deploy hello python3 hello.py
check "a Node.js function is deployed" deploy node node node.mjs
check "both answer" serves
check "a call is in the history" invoke_first
check "compose restart keeps functions, token and history" restarted
check "so do compose down and up, on another port" recreated
check "a killed server comes back" restarts_after_a_crash

check "web servers are on the container's network" on_the_network
check "a function with a policy is deployed" deploy fetch python3 fetch.py \
  --form "network={\"allow\": [\"web.example.com:80\", \"[$WEB6]:80\"]}"
check "a function without one is deployed" deploy closed python3 fetch.py
check "an allowed name is reached" reaches web.example.com "$WEB"
check "an allowed IPv6 network is reached" reaches "[$WEB6]" "$WEB6"
check "another address is refused" refused fetch ECONNREFUSED "$OTHER"
check "another name is refused" refused fetch gaierror other.example.com
check "the host of the container is refused" refused fetch ECONNREFUSED "$HOST"
check "both refusals are told" refusals_are_told "$OTHER" "$HOST"
check "a function with all of the internet is deployed" deploy open python3 fetch.py --form network=internet
check "it reaches the other address" reaches_from open "$OTHER" "$OTHER"
check "it does not reach Hearth itself" refused open ECONNREFUSED "$(address):8080"
check "a function without a policy reaches no address" refused closed ENETUNREACH "$WEB"
check "nor a name" refused closed gaierror web.example.com

check "a slow function is deployed" deploy slow python3 slow.py --form timeout_ms=60000
check "SIGTERM: a running call is finished, the container ends with 0" drains 5 200
check "the container starts again" compose start
check "it becomes healthy" healthy
check "SIGTERM: a call longer than the drain is cut off, the container ends with 0 in the grace period" drains 50 503
podman rm --force --volumes --time 0 web other >>"$LOG" 2>&1
check "no process, cgroup or namespace is left of a stopped container" nothing_is_left
check "compose down --volumes removes the container and its data" removed
podman network rm hearth_default >>"$LOG" 2>&1
find /sys/fs/cgroup -depth -type d -path "*/libpod_parent*" -exec rmdir {} \; 2>/dev/null

checked || {
  say "podman's log: $LOG"
  exit 1
}
