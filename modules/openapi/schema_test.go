package openapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// listed returns the tools of a document by name, and why operations were left out.
func listed(t *testing.T, text string) (tools map[string]tool, left []error) {
	t.Helper()
	d, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	at, _ := url.Parse("https://api.test/v1")
	all, left, err := d.operations(place{url: at})
	if err != nil {
		t.Fatal(err)
	}
	tools = map[string]tool{}
	for _, op := range all {
		var one tool
		if err := json.Unmarshal(op.Tool, &one); err != nil {
			t.Fatal(err)
		}
		tools[one.Name] = one
	}
	return tools, left
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := compact(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withBody returns a document whose only operation, op, takes a JSON body of this schema.
func withBody(version, schema, schemas string) string {
	return fmt.Sprintf(`{"openapi":%q,"paths":{"/x":{"post":{"operationId":"op","requestBody":{"content":{"application/json":{"schema":%s}}}}}},"components":{"schemas":{%s}}}`, version, schema, schemas)
}

func TestSchemas(t *testing.T) {
	for name, test := range map[string]struct{ version, schema, schemas, want string }{
		"nullable":            {"3.0.0", `{"type":"string","nullable":true}`, "", `{"type":["string","null"]}`},
		"nullable enum":       {"3.0.0", `{"type":"string","enum":["a","a"],"nullable":true}`, "", `{"enum":["a",null],"type":["string","null"]}`},
		"nullable reference":  {"3.0.0", `{"nullable":true,"description":"d","allOf":[{"$ref":"#/components/schemas/A"}]}`, `"A":{"type":"integer"}`, `{"anyOf":[{"allOf":[{"type":"integer"}]},{"type":"null"}],"description":"d"}`},
		"types":               {"3.1.0", `{"type":["string","null","file"]}`, "", `{"type":["null","string"]}`},
		"exclusive":           {"3.0.0", `{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}`, "", `{"exclusiveMinimum":1,"maximum":2,"type":"number"}`},
		"exclusive of 3.1":    {"3.1.0", `{"exclusiveMinimum":1.50}`, "", `{"exclusiveMinimum":1.50}`},
		"example":             {"3.0.0", `{"type":"string","example":"x","xml":{},"externalDocs":{},"x-y":1}`, "", `{"examples":["x"],"type":"string"}`},
		"read only":           {"3.0.0", `{"type":"object","required":["id","a"],"properties":{"id":{"type":"string","readOnly":true},"a":{"type":"string"},"w":{"type":"string","writeOnly":true}}}`, "", `{"properties":{"a":{"type":"string"},"w":{"type":"string","writeOnly":true}},"required":["a"],"type":"object"}`},
		"closed":              {"3.0.0", `{"type":"object","properties":{"additionalProperties":{"type":"string"}},"additionalProperties":false}`, "", `{"additionalProperties":false,"properties":{"additionalProperties":{"type":"string"}},"type":"object"}`},
		"map":                 {"3.0.0", `{"additionalProperties":{"$ref":"#/components/schemas/A"}}`, `"A":{"type":"integer"}`, `{"additionalProperties":{"type":"integer"}}`},
		"recursion":           {"3.0.0", `{"$ref":"#/components/schemas/Node"}`, `"Node":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Node"}}}`, `{"$ref":"#/$defs/Node"} {"Node":{"properties":{"next":{"$ref":"#/$defs/Node"}},"type":"object"}}`},
		"used twice":          {"3.0.0", `{"properties":{"a":{"$ref":"#/components/schemas/A"},"b":{"$ref":"#/components/schemas/A"},"c":{"$ref":"#/components/schemas/B"}}}`, `"A":{"type":"integer"},"B":{"type":"boolean"},"Unused":{"type":"null"}`, `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"},"c":{"type":"boolean"}}} {"A":{"type":"integer"}}`},
		"beside a reference":  {"3.1.0", `{"$ref":"#/components/schemas/A","description":"mine"}`, `"A":{"type":"integer","description":"its"}`, `{"description":"mine","type":"integer"}`},
		"discriminator":       {"3.0.0", `{"oneOf":[{"$ref":"#/components/schemas/A"}],"discriminator":{"propertyName":"kind","mapping":{"a":"#/components/schemas/A"}}}`, `"A":{"type":"object"}`, `{"description":"(kind says which kind it is)","oneOf":[{"type":"object"}]}`},
		"patterns":            {"3.0.0", `{"anyOf":[{"pattern":"^[a-z0-9\\-_]{1,3}$"},{"pattern":"^(?i)a"},{"pattern":"(?!x)"},{"pattern":"a{"},{"pattern":"[[:alpha:]]"},{"pattern":"\\_"}]}`, "", `{"anyOf":[{"pattern":"^[a-z0-9\\-_]{1,3}$"},{},{},{},{},{}]}`},
		"malformed":           {"3.0.0", `{"type":"any","required":true,"minimum":"1","maxLength":-1,"properties":7,"items":[{"type":"string"}],"enum":[],"multipleOf":0,"title":3}`, "", `{"items":{"type":"string"}}`},
		"booleans":            {"3.1.0", `{"properties":{"a":true,"b":false}}`, "", `{"properties":{"a":{},"b":{"not":{}}}}`},
		"escaped":             {"3.0.0", `{"$ref":"#/components/schemas/a~1b%20c"}`, `"a/b c":{"type":"integer"}`, `{"type":"integer"}`},
		"references in a row": {"3.0.0", `{"$ref":"#/components/schemas/A"}`, `"A":{"$ref":"#/components/schemas/B"},"B":{"type":"integer"}`, `{"type":"integer"}`},
	} {
		tools, left := listed(t, withBody(test.version, test.schema, test.schemas))
		if len(left) > 0 {
			t.Errorf("%s: %v", name, left)
			continue
		}
		got := jsonOf(t, tools["op"].InputSchema["properties"].(object)["body"])
		if defs := tools["op"].InputSchema["$defs"]; defs != nil {
			got += " " + jsonOf(t, defs)
		}
		if test.want = strings.ReplaceAll(test.want, "1.50", "1.5"); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The tool of an operation, of both generations of the format.
func TestTools(t *testing.T) {
	v2 := `{"swagger":"2.0","host":"api.test","consumes":["application/json"],"paths":{"/pets/{id}":{"parameters":[{"name":"id","in":"path","required":true,"type":"integer","format":"int64"}],
		"put":{"operationId":"putPet","summary":"Replace a pet","deprecated":true,"tags":["pets"],"parameters":[{"name":"filter[by]","in":"query","type":"array","items":{"type":"string"},"collectionFormat":"multi"},
			{"in":"body","name":"pet","required":true,"schema":{"$ref":"#/definitions/Pet"}},{"name":"Authorization","in":"header","type":"string"}],
			"responses":{"200":{"schema":{"$ref":"#/definitions/Pet"}}}},
		"delete":{"operationId":"putPet"}}},
		"definitions":{"Pet":{"type":"object","properties":{"name":{"type":"string"},"photo":{"type":"file"}}}}}`
	v3 := `{"openapi":"3.0.1","paths":{"/pets/{id}":{"parameters":[{"$ref":"#/components/parameters/id"}],
		"put":{"operationId":"putPet","summary":"Replace a pet","deprecated":true,"tags":["pets"],"parameters":[{"name":"filter[by]","in":"query","schema":{"type":"array","items":{"type":"string"}}},{"name":"Authorization","in":"header","schema":{}}],
			"requestBody":{"$ref":"#/components/requestBodies/pet"},"responses":{"200":{"$ref":"#/components/responses/pet"},"404":{"description":"none"}}},
		"delete":{"operationId":"putPet"}}},
		"components":{"parameters":{"id":{"name":"id","in":"path","required":true,"schema":{"type":"integer","format":"int64"}}},
			"requestBodies":{"pet":{"required":true,"content":{"application/xml":{},"application/json":{"schema":{"$ref":"#/components/schemas/Pet"}}}}},
			"responses":{"pet":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Pet"}}}}},
			"schemas":{"Pet":{"type":"object","properties":{"name":{"type":"string"},"photo":{"type":"string","format":"binary"}}}}}}`
	for version, text := range map[string]string{"2.0": v2, "3.0": v3} {
		tools, left := listed(t, text)
		if len(left) > 0 || len(tools) != 2 {
			t.Fatalf("%s: %d tools, left %v", version, len(tools), left)
		}
		put := tools["putPet"]
		pet := `{"properties":{"name":{"type":"string"},"photo":{"format":"binary","type":"string"}},"type":"object"}`
		if got, want := jsonOf(t, put.InputSchema), `{"properties":{"body":`+pet+`,"filter_by":{"items":{"type":"string"},"type":"array"},"id":{"format":"int64","type":"integer"}},"required":["body","id"],"type":"object"}`; got != want {
			t.Errorf("%s: input %s, want %s", version, got, want)
		}
		if got := jsonOf(t, put.OutputSchema); got != pet {
			t.Errorf("%s: output %s", version, got)
		}
		if put.Description != "Deprecated.\n\nReplace a pet\n\nPUT /pets/{id}. Tags: pets" || put.Title != "Replace a pet" || put.Annotations != (annotations{Idempotent: true, OpenWorld: true}) {
			t.Errorf("%s: %+v", version, put)
		}
		other := tools["putPet_"+digest("DELETE /pets/{id}putPet")]
		if !other.Annotations.Destructive || other.Annotations.ReadOnly {
			t.Errorf("%s: the second of a name: %+v", version, tools)
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("long", 30)
	tools, _ := listed(t, `{"openapi":"3.1.0","paths":{"/a/{b}/c":{"get":{}},"/d":{"get":{"operationId":"pets/list all"}},"/e":{"get":{"operationId":"`+long+`"}}}}`)
	for _, want := range []string{"get_a_b_c", "pets_list_all", long[:55] + "_" + digest(long)} {
		if _, ok := tools[want]; !ok || len(want) > 64 {
			t.Errorf("no tool %s", want)
		}
	}
	if got := jsonOf(t, tools["get_a_b_c"].InputSchema); got != `{"properties":{"b":{"type":"string"}},"required":["b"],"type":"object"}` {
		t.Errorf("a path whose variable is not declared: %s", got)
	}
}

// Documents of bad faith are refused, or cost little.
func TestHostileDocuments(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 3000) + `{}` + strings.Repeat(`}}`, 3000)
	var bomb strings.Builder
	for i := range 40 {
		next := fmt.Sprintf(`{"$ref":"#/components/schemas/B%d"}`, i+1)
		fmt.Fprintf(&bomb, `"B%d":{"properties":{"a":%s,"b":%s,"c":{"allOf":[%s,%s]}}},`, i, next, next, next, next)
	}
	wide := strings.TrimSuffix(strings.Repeat(`{"type":"object","description":"`+strings.Repeat("x", 100)+`"},`, 5000), ",")
	yaml := "openapi: 3.0.0\npaths: {/x: {get: {}}}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		yaml += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	many := strings.Builder{}
	for i := range maxOperations + 1 {
		fmt.Fprintf(&many, `"/%d":{"get":{}},`, i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"deep":            {withBody("3.0.0", deep, ""), ""},
		"references":      {withBody("3.0.0", `{"$ref":"#/components/schemas/B0"}`, bomb.String()+`"B40":{}`), ""},
		"wide":            {withBody("3.0.0", `{"anyOf":[`+wide+`]}`, ""), ""},
		"itself":          {withBody("3.0.0", `{"$ref":"#/components/schemas/A"}`, `"A":{"$ref":"#/components/schemas/A"}`), ""},
		"itself, a body":  {`{"openapi":"3.0.0","paths":{"/x":{"post":{"requestBody":{"$ref":"#/components/requestBodies/a"}}}},"components":{"requestBodies":{"a":{"$ref":"#/components/requestBodies/a"}}}}`, "a reference leads to itself"},
		"external":        {withBody("3.0.0", `{"$ref":"https://evil.test/a.json#/A"}`, ""), "it refers to another document (https://evil.test/a.json#/A), which dynmcp does not fetch"},
		"external file":   {withBody("3.0.0", `{"properties":{"a":{"$ref":"../../etc/passwd"}}}`, ""), "it refers to another document (../../etc/passwd)"},
		"dangling":        {withBody("3.0.0", `{"$ref":"#/components/schemas/None"}`, ""), "there is no #/components/schemas/None"},
		"aliases":         {yaml, "the document has too many values"},
		"too many":        {`{"openapi":"3.0.0","paths":{` + strings.TrimSuffix(many.String(), ",") + `}}`, "more than 10000 operations"},
		"another format":  {`{"asyncapi":"2.0"}`, "not of OpenAPI"},
		"another version": {`{"openapi":"4.0.0","paths":{}}`, "not supported"},
		"no operations":   {`{"openapi":"3.0.0","paths":{}}`, "no operations"},
		"not JSON":        {`{"openapi":`, "cannot be read"},
		"a page":          {`<html><body>x</body></html>`, "not an object"},
		"a list":          {`- a`, "not an object"},
	} {
		began := time.Now()
		d, err := parse([]byte(test.text))
		var all []*operation
		if err == nil {
			at, _ := url.Parse("https://api.test")
			all, _, err = d.operations(place{url: at})
		}
		switch {
		case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		case err == nil && len(all[0].Tool) > maxInput+1000:
			t.Errorf("%s: a tool of %d bytes", name, len(all[0].Tool))
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// checkSchemas checks that the schemas of tools are valid, and that references lead somewhere.
func checkSchemas(t *testing.T, tools map[string]json.RawMessage) {
	t.Helper()
	for name, text := range tools {
		var one struct{ InputSchema, OutputSchema *jsonschema.Schema }
		if err := json.Unmarshal(text, &one); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range []*jsonschema.Schema{one.InputSchema, one.OutputSchema} {
			if s == nil {
				continue
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if s.Type != "object" {
				t.Errorf("%s: a schema of type %q", name, s.Type)
			}
		}
	}
}

// A document that leads one operation elsewhere keeps the others.
func TestOperationsThatAreLeftOut(t *testing.T) {
	tools, left := listed(t, document30(getPet+`,"/x":{"get":{"operationId":"x","parameters":[{"$ref":"other.json#/p"}]}}`))
	if len(tools) != 1 || len(left) != 1 || !strings.HasPrefix(left[0].Error(), "GET /x: it refers to another document") {
		t.Errorf("%d tools, left out %v", len(tools), left)
	}
}
