// Checks documents against their schemas: server.json against that of the MCP
// registry, SBOMs against that of CycloneDX. The packages it needs are those of
// .ci/release, beside which Node looks for them.
// Usage: node validate.mjs SERVER_SCHEMA SERVER_JSON SBOM…
import fs from "node:fs";
import Ajv from "ajv";
import formats from "ajv-formats";
import * as CDX from "@cyclonedx/cyclonedx-library";

const [schema, server, ...sboms] = process.argv.slice(2);
const ajv = new Ajv({ strict: false, allErrors: true });
formats(ajv);
const check = ajv.compile(JSON.parse(fs.readFileSync(schema, "utf8")));
let bad = 0;
const say = (file, errors) => {
  if (errors) bad++;
  console.log(`${errors ? "FAIL" : "ok"} ${file}${errors ? `: ${JSON.stringify(errors)}` : ""}`);
};
const document = JSON.parse(fs.readFileSync(server, "utf8"));
say(server, check(document) ? null : check.errors);
const validator = new CDX.Validation.JsonStrictValidator(CDX.Spec.Version.v1dot6);
for (const file of sboms) say(file, await validator.validate(fs.readFileSync(file, "utf8")));
process.exit(bad ? 1 : 0);
