// Prints the checks of two runs of the conformance suite side by side and fails
// if one that passed in the first did not in the second.
// Usage: node conformance-compare.mjs DIRECT THROUGH [bridged|gateway]
// "bridged" says that the server behind dynmcp makes the handshake in the second run,
// "gateway" that both runs are of HTTP servers, the second of dynmcp's own.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

// These scenarios judge the HTTP: an adapter's, which has nothing of dynmcp in it, or
// the gateway's, where each check has to pass whatever the other server does.
const ofHTTP = ['dns-rebinding-protection', 'http-header-validation', 'server-session-lifecycle', 'server-sse-polling']

// This check adds a tool of the same name for the third time. go-sdk announces that,
// the gateway what changes a list, as the first time did.
const unchanged = 'sep-2575-server-sends-tools-list-changed-on-subscription'

// These cannot pass where the server makes the handshake: they expect names of
// questions that only the server's own code for 2026-07-28 gives, or a second round
// of questions, which that server has in 2026-07-28 only.
const ofTheEra = ['input-required-result-basic-elicitation', 'input-required-result-ignore-extra-params', 'input-required-result-multi-round']

// read returns a run's checks: scenario → check → status. A check that comes
// several times in a scenario has a number.
function read(dir) {
  const scenarios = new Map()
  for (const name of readdirSync(dir).sort()) {
    const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '')
    const checks = new Map()
    for (const check of JSON.parse(readFileSync(join(dir, name, 'checks.json'), 'utf8'))) {
      let key = check.id
      for (let n = 2; checks.has(key); n++) key = `${check.id} ${n}`
      checks.set(key, check)
    }
    scenarios.set(scenario, checks)
  }
  return scenarios
}

const [direct, through] = process.argv.slice(2, 4).map(read)
const bridged = process.argv[4] === 'bridged'
const gateway = process.argv[4] === 'gateway'
const count = (checks, status) => [...(checks?.values() ?? [])].filter((c) => c.status === status).length
const figures = (checks) => `${count(checks, 'SUCCESS')} passed, ${count(checks, 'FAILURE')} failed, ${count(checks, 'WARNING')} warned`
const total = { direct: 0, through: 0, lost: 0 }

console.log(`${'scenario'.padEnd(48)}${'direct'.padEnd(32)}through dynmcp`)
for (const [scenario, checks] of direct) {
  const theirs = through.get(scenario)
  const notOurs = !gateway && ofHTTP.includes(scenario) ? 'of the adapter' : bridged && ofTheEra.includes(scenario) ? "of the server's era" : ''
  const counts = !notOurs
  console.log(`${scenario.padEnd(48)}${figures(checks).padEnd(32)}${figures(theirs)}${counts ? '' : `  (${notOurs}, not compared)`}`)
  total.direct += count(checks, 'SUCCESS')
  total.through += count(theirs, 'SUCCESS')
  for (const [id, check] of checks) {
    const now = theirs?.get(id)
    if (!counts || check.status !== 'SUCCESS' || now?.status === 'SUCCESS') continue
    if (gateway && id === unchanged) {
      console.log(`  not the same ${id}: the list is what it was`)
      continue
    }
    total.lost++
    console.log(`  LOST ${id}: ${now?.status ?? 'not run'} ${now?.errorMessage ?? ''}`)
  }
  for (const [id, check] of gateway && ofHTTP.includes(scenario) ? (theirs ?? []) : []) {
    if (check.status === 'SUCCESS' || check.status === 'INFO') continue
    total.lost++
    console.log(`  FAILED ${id}: ${check.status} ${check.errorMessage ?? ''}`)
  }
}
console.log(`${'total'.padEnd(48)}${`${total.direct} passed`.padEnd(32)}${total.through} passed`)
if (direct.size === 0 || total.direct === 0) {
  console.log('the suite ran nothing')
  process.exit(1)
}
process.exit(total.lost === 0 ? 0 : 1)
