# Sourced by .ci/run and .ci/nightly. step NAME prints the name, and the time that the step
# before it took; fail ends with a reason; finish ends with a reason to believe.
export DYNMCP_REQUIRE_NPX=1
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

began=
step() {
  [ -z "$began" ] || printf '(%s s)\n' $((SECONDS - began))
  began=$SECONDS
  printf '\n== %s\n' "$*"
}
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
finish() {
  step "$*"
  printf 'all checks passed in %s s\n' "$SECONDS"
}

# nothing_left fails if a process of the tests is still there.
nothing_left() {
  local found
  for _ in $(seq 100); do
    found=$(pgrep -af 'fakemcp|dynmcp-guard|nats-server|mcp-server-(everything|filesystem|memory)' || true)
    [ -n "$found" ] || return 0
    sleep 0.1
  done
  printf '%s\n' "$found"
  # Elsewhere such a process may be somebody's own.
  [ "${CI:-}" != true ] || fail "processes are left over"
}
