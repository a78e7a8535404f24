package typescript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A parser reads types back into schemas.
type parser struct {
	text string
	at   int
}

// parse reads what Type writes: a type, and those that it refers to as $defs.
func parse(text string) (root map[string]any, err error) {
	p := &parser{text: text}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v, at %q", r, p.text[p.at:min(len(p.text), p.at+60)])
		}
	}()
	root = p.line()
	defs := map[string]any{}
	for p.skip(); p.at < len(p.text); p.skip() {
		p.want("type ")
		name := p.take(`[A-Za-z_]\w*`)
		p.want(" = ")
		defs[name] = p.line()
	}
	root["$defs"] = defs
	return root, nil
}

func (p *parser) skip() {
	for p.at < len(p.text) && strings.ContainsRune(" \n", rune(p.text[p.at])) {
		p.at++
	}
}

func (p *parser) sees(s string) bool { return strings.HasPrefix(p.text[p.at:], s) }

func (p *parser) eat(s string) bool {
	if !p.sees(s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *parser) want(s string) {
	if !p.eat(s) {
		panic("want " + s)
	}
}

func (p *parser) take(pattern string) string {
	found := regexp.MustCompile(`^(?:` + pattern + `)`).FindString(p.text[p.at:])
	if found == "" {
		panic("want " + pattern)
	}
	p.at += len(found)
	return found
}

// value reads a value in JSON as it stands.
func (p *parser) value() json.RawMessage {
	d := json.NewDecoder(strings.NewReader(p.text[p.at:]))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		panic(err)
	}
	p.at += int(d.InputOffset())
	return raw
}

// line reads a type with its default and comment.
func (p *parser) line() map[string]any {
	node := p.union()
	if p.eat(" = ") {
		node["default"] = p.value()
	}
	switch {
	case p.eat(" // "):
		comments(node, p.take(`[^\n]+`))
	case p.eat(" /* "):
		comments(node, p.block())
	}
	return node
}

func (p *parser) block() string {
	text, _, ok := strings.Cut(p.text[p.at:], " */")
	if !ok {
		panic("no end of a comment")
	}
	p.at += len(text) + 3
	return text
}

func (p *parser) union() map[string]any { return p.joined(" | ", "anyOf", p.both) }
func (p *parser) both() map[string]any  { return p.joined(" & ", "allOf", p.suffixed) }

func (p *parser) joined(sign, keyword string, next func() map[string]any) map[string]any {
	all := []any{next()}
	for p.eat(sign) {
		all = append(all, next())
	}
	if len(all) == 1 {
		return all[0].(map[string]any)
	}
	return map[string]any{keyword: all}
}

func (p *parser) suffixed() map[string]any {
	node := p.atom()
	for p.eat("[]") {
		node = map[string]any{"type": "array", "items": node}
	}
	return node
}

func (p *parser) atom() map[string]any {
	switch c := p.text[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.tuple()
	case c == '(':
		p.at++
		node := p.line()
		p.want(")")
		return map[string]any{"allOf": []any{node}} // a node of its own
	case strings.ContainsRune(`"-0123456789`, rune(c)):
		return map[string]any{"enum": []any{p.value()}}
	}
	switch word := p.take(`[A-Za-z_]\w*`); word {
	case "true", "false", "null":
		return map[string]any{"enum": []any{json.RawMessage(word)}}
	case "string", "number", "integer", "boolean", "object":
		return map[string]any{"type": word}
	case "any":
		return map[string]any{}
	case "never":
		return map[string]any{"never": true}
	default:
		return map[string]any{"$ref": "#/$defs/" + word}
	}
}

func (p *parser) object() map[string]any {
	node := map[string]any{"type": "object", "additionalProperties": false}
	p.want("{")
	about := ""
	switch {
	case p.eat(" // "):
		about = p.take(`[^\n]+`)
	case p.eat(" /* "):
		about = p.block()
	}
	properties := map[string]any{}
	var required []any
	for p.skip(); !p.eat("}"); p.skip() {
		p.eat("; ")
		p.skip()
		switch {
		case p.eat("..."):
			delete(node, "additionalProperties")
		case p.eat("[key: "):
			node["propertyNames"] = p.union()
			p.want("]: ")
			node["additionalProperties"] = p.line()
		default:
			name := p.name()
			optional := p.eat("?")
			p.want(": ")
			properties[name] = p.line()
			if !optional {
				required = append(required, name)
			}
		}
		p.eat(";")
	}
	node["properties"], node["required"] = properties, required
	if about != "" {
		comments(node, about)
	}
	return node
}

func (p *parser) name() (name string) {
	if p.sees(`"`) {
		if err := json.Unmarshal(p.value(), &name); err != nil {
			panic(err)
		}
		return name
	}
	return p.take(`[A-Za-z0-9_$]+`)
}

func (p *parser) tuple() map[string]any {
	p.want("[")
	node := map[string]any{"type": "array", "items": false}
	var elements []any
	least := 0
	for !p.eat("]") {
		p.eat(", ")
		if p.eat("...") {
			node["items"] = p.suffixed()["items"]
			continue
		}
		elements = append(elements, p.suffixed())
		if !p.eat("?") {
			least++
		}
	}
	node["prefixItems"] = elements
	if least > 0 {
		node["minItems"] = json.RawMessage(fmt.Sprint(least))
	}
	return node
}

var tag = regexp.MustCompile(`(^|\s)@([A-Za-z$"])`)

// comments adds the description and the tags of a comment.
func comments(node map[string]any, text string) {
	at := len(text)
	if found := tag.FindStringIndex(text); found != nil {
		at = found[0]
	}
	if about := strings.TrimSpace(text[:at]); about != "" {
		node["description"] = about
	}
	p := &parser{text: text, at: at}
	for p.skip(); p.eat("@"); p.skip() {
		key := ""
		if p.sees(`"`) {
			key = p.name()
		} else {
			key = p.take(`[A-Za-z][\w-]*`)
		}
		if key == "oneOf" {
			node["oneOf"] = node["anyOf"]
			delete(node, "anyOf")
			continue
		}
		p.want(" ")
		var value any
		if word := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*`).FindString(p.text[p.at:]); word != "" && word != "true" && word != "false" && word != "null" {
			p.at += len(word)
			value = json.RawMessage(`"` + word + `"`)
		} else {
			value = p.value()
		}
		if more, _ := node["required"].([]any); key == "required" && more != nil {
			_ = json.Unmarshal(value.(json.RawMessage), &value)
			value = append(more, value.([]any)...)
		}
		node[key] = value
	}
	if p.skip(); p.at < len(p.text) {
		panic("a comment goes on: " + p.text[p.at:])
	}
}
