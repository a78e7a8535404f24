// Prints the checks of two runs of the conformance suite side by side. It fails if a check
// of the first run is worse or better in the second or missing there, and expected does not
// say so, or if the first run is too small to tell.
// Usage: node conformance-compare.mjs DIRECT THROUGH SCENARIOS CHECKS [bridged|gateway]
// SCENARIOS and CHECKS are how many the first run has at least, and passes at least.
// "bridged" says that the server behind dynmcp makes the handshake in the second run,
// "gateway" that both runs are of HTTP servers, the second of dynmcp's own.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

// These scenarios judge the HTTP: an adapter's, which has nothing of dynmcp in it, or
// the gateway's, where each check has to pass whatever the other server does.
const ofHTTP = ['dns-rebinding-protection', 'http-header-validation', 'server-session-lifecycle', 'server-sse-polling']

// What a check through dynmcp says where that differs from the direct run for a reason:
// "MODE SCENARIO CHECK" → its status, the reason, and how its message begins. Any other
// status is red, a better one too.
const notRun = 'not run'
const unchanged = 'the list is what it was: the check adds a tool of one name for the third time, which go-sdk announces'
const oneProcess = 'its server is one process for all requests, where the adapter starts one for each'
const ofTheEra = "only the server's own code for 2026-07-28 gives this name, or a second round of questions"
const expected = new Map([
  ['gateway server-stateless sep-2575-server-sends-tools-list-changed-on-subscription', ['WARNING', unchanged]],
  ['bridged server-stateless sep-2575-server-sends-prompts-list-changed-on-subscription', ['SUCCESS', oneProcess]],
  ['bridged input-required-result-basic-elicitation sep-2322-elicitation-incomplete', ['FAILURE', ofTheEra, 'inputRequests missing expected key']],
  ['bridged input-required-result-basic-elicitation sep-2322-elicitation-complete', [notRun, ofTheEra]],
  ['bridged input-required-result-ignore-extra-params sep-2322-ignore-unexpected-params', ['WARNING', ofTheEra, 'Server did not return complete result']],
  ['bridged input-required-result-multi-round sep-2322-multi-round-r2', ['FAILURE', ofTheEra, 'Expected new InputRequiredResult']],
  ['bridged input-required-result-multi-round sep-2322-multi-round-r3', [notRun, ofTheEra]],
])

// read returns a run's checks: scenario → check → status. A check that comes
// several times in a scenario has a number.
function read(dir) {
  const scenarios = new Map()
  for (const name of existsSync(dir) ? readdirSync(dir).sort() : []) {
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
const [minScenarios, minChecks] = process.argv.slice(4, 6).map(Number)
const mode = process.argv[6] ?? 'plain'
if (!(minScenarios > 0 && minChecks > 0)) throw new Error('how many scenarios and checks there are at least is not said')

// rank orders statuses; one that is not known is the worst, and so is a missing check.
const rank = (status) => ['FAILURE', 'WARNING', 'SKIPPED', 'INFO', 'SUCCESS'].indexOf(status)
const count = (checks, status) => [...(checks?.values() ?? [])].filter((c) => c.status === status).length
const figures = (checks) => `${count(checks, 'SUCCESS')} passed, ${count(checks, 'FAILURE')} failed, ${count(checks, 'WARNING')} warned`
const total = { direct: 0, through: 0 }
let wrong = 0
const red = (text) => {
  wrong++
  console.log(text)
}

console.log(`${'scenario'.padEnd(48)}${'direct'.padEnd(32)}through dynmcp`)
for (const scenario of new Set([...direct.keys(), ...through.keys()])) {
  const [theirs, ours] = [direct.get(scenario), through.get(scenario)]
  const judgesHTTP = ofHTTP.includes(scenario)
  const ofTheAdapter = mode !== 'gateway' && judgesHTTP
  console.log(`${scenario.padEnd(48)}${figures(theirs).padEnd(32)}${figures(ours)}${ofTheAdapter ? '  (of the adapter, not compared)' : ''}`)
  total.direct += count(theirs, 'SUCCESS')
  total.through += count(ours, 'SUCCESS')
  if (ofTheAdapter) {
    if (!(ours?.size > 0)) red(`  NOT RUN through dynmcp: ${scenario}`)
    continue
  }
  for (const id of new Set([...(theirs?.keys() ?? []), ...(ours?.keys() ?? [])])) {
    const [was, now] = [theirs?.get(id), ours?.get(id)]
    const exception = expected.get(`${mode} ${scenario} ${id}`)
    const text = `${id}: ${was?.status ?? 'not run'} directly, ${now?.status ?? 'not run'} through dynmcp ${now?.errorMessage ?? ''}`
    if (mode === 'gateway' && judgesHTTP) {
      if (now?.status !== 'SUCCESS' && now?.status !== 'INFO') red(`  FAILED ${text}`)
    } else if (exception) {
      const [status, why, says = ''] = exception
      if ((now?.status ?? notRun) === status && (now?.errorMessage ?? '').startsWith(says)) console.log(`  as expected ${id}, ${status}: ${why}`)
      else red(`  NOT ${status}, as expected: ${text}`)
    } else if (rank(now?.status) < rank(was?.status)) {
      red(`  LOST ${text}`)
    } else if (rank(now?.status) > rank(was?.status)) {
      red(`  GAINED, and nothing says why: ${scenario} ${text}`)
    }
  }
}
console.log(`${'total'.padEnd(48)}${`${total.direct} passed`.padEnd(32)}${total.through} passed`)
if (direct.size < minScenarios) red(`the first run has ${direct.size} scenarios, and not at least ${minScenarios}`)
if (total.direct < minChecks) red(`the first run passes ${total.direct} checks, and not at least ${minChecks}`)
process.exit(wrong === 0 ? 0 : 1)
