// Prints the checks of two runs of the conformance suite side by side. It fails if a check
// of the first run is worse in the second or missing there, if one is better and
// gains does not say why, or if the first run is too small to tell.
// Usage: node conformance-compare.mjs DIRECT THROUGH SCENARIOS CHECKS [bridged|gateway]
// SCENARIOS and CHECKS are how many the first run has at least, and passes at least.
// "bridged" says that the server behind dynmcp makes the handshake in the second run,
// "gateway" that both runs are of HTTP servers, the second of dynmcp's own.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
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

// Why checks pass, or are there, through dynmcp only: "MODE SCENARIO CHECK" → the reason.
const oneServer = 'its server is one process for all requests, where the adapter starts one for each'
const gains = new Map([
  ['bridged server-stateless sep-2575-server-sends-prompts-list-changed-on-subscription', oneServer],
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
  const notOurs = mode !== 'gateway' && judgesHTTP ? 'of the adapter' : mode === 'bridged' && ofTheEra.includes(scenario) ? "of the server's era" : ''
  console.log(`${scenario.padEnd(48)}${figures(theirs).padEnd(32)}${figures(ours)}${notOurs && `  (${notOurs}, not compared)`}`)
  total.direct += count(theirs, 'SUCCESS')
  total.through += count(ours, 'SUCCESS')
  if (notOurs) continue
  for (const id of new Set([...(theirs?.keys() ?? []), ...(ours?.keys() ?? [])])) {
    const [was, now] = [theirs?.get(id), ours?.get(id)]
    const text = `${id}: ${was?.status ?? 'not run'} directly, ${now?.status ?? 'not run'} through dynmcp ${now?.errorMessage ?? ''}`
    if (mode === 'gateway' && judgesHTTP) {
      if (now?.status !== 'SUCCESS' && now?.status !== 'INFO') red(`  FAILED ${text}`)
    } else if (mode === 'gateway' && id === unchanged && was && now) {
      if (was.status !== now.status) console.log(`  not the same ${id}: the list is what it was`)
    } else if (rank(now?.status) < rank(was?.status)) {
      red(`  LOST ${text}`)
    } else if (rank(now?.status) > rank(was?.status)) {
      const why = gains.get(`${mode} ${scenario} ${id}`)
      if (why) console.log(`  gained ${id}: ${why}`)
      else red(`  GAINED, and nothing says why: ${scenario} ${text}`)
    }
  }
}
console.log(`${'total'.padEnd(48)}${`${total.direct} passed`.padEnd(32)}${total.through} passed`)
if (direct.size < minScenarios) red(`the first run has ${direct.size} scenarios, and not at least ${minScenarios}`)
if (total.direct < minChecks) red(`the first run passes ${total.direct} checks, and not at least ${minChecks}`)
process.exit(wrong === 0 ? 0 : 1)
