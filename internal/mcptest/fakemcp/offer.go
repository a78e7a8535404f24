package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An offer is the content of the four lists. Tools change it at run time.
type offer struct {
	mu    sync.Mutex
	lists map[string][]entry // by the member of the result
	page  int
}

// An entry is an entry of a list: its bytes, and its name or URI as the key.
type entry struct {
	key string
	raw json.RawMessage
}

func newOffer(cfg config) (*offer, error) {
	o := &offer{page: cfg.page, lists: map[string][]entry{}}
	if !cfg.bare {
		for _, t := range builtins {
			o.add("tools", t.entry())
		}
	}
	if cfg.tasks {
		for _, t := range taskTools {
			e := tool{name: t.name, doc: "It may become a task.", schema: t.schema}.entry()
			if t.required {
				e.raw = append(e.raw[:len(e.raw)-1], `,"execution":{"taskSupport":"required"}}`...)
			}
			o.add("tools", e)
		}
	}
	for n := range cfg.tools {
		o.add("tools", generatedTool(n+1))
	}
	for _, def := range cfg.toolDefs {
		e, err := givenEntry("name", def)
		if err != nil {
			return nil, err
		}
		o.add("tools", e)
	}
	if err := o.addResources(cfg); err != nil {
		return nil, err
	}
	return o, o.addPrompts(cfg)
}

func (o *offer) addResources(cfg config) error {
	o.add("resourceTemplates", template(cfg.uriPrefix+"item/{id}"))
	if len(cfg.resources) == 0 {
		o.add("resources", resource(cfg.uriPrefix+"text"))
		o.add("resources", resource(cfg.uriPrefix+"blob"))
	}
	for _, given := range cfg.resources {
		e, err := givenOr(resource, "uri", given)
		if err != nil {
			return err
		}
		o.add("resources", e)
	}
	return nil
}

func (o *offer) addPrompts(cfg config) error {
	given := cfg.prompts
	if len(given) == 0 {
		given = list{cfg.name + ".greet"}
	}
	for _, p := range given {
		e, err := givenOr(prompt, "name", p)
		if err != nil {
			return err
		}
		o.add("prompts", e)
	}
	return nil
}

// givenOr returns an entry given as JSON, or the one that build makes of any other text.
func givenOr(build func(string) entry, member, given string) (entry, error) {
	if strings.HasPrefix(given, "{") {
		return givenEntry(member, given)
	}
	return build(given), nil
}

// givenEntry returns an entry of the bytes of def. Without a key it can be listed but not found, as
// with some real servers.
func givenEntry(member, def string) (entry, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(def), &m); err != nil {
		return entry{}, fmt.Errorf("entry %s: %w", def, err)
	}
	var key string
	_ = json.Unmarshal(m[member], &key)
	return entry{key, json.RawMessage(def)}, nil
}

func generatedTool(n int) entry {
	name := fmt.Sprintf("tool_%03d", n)
	doc := fmt.Sprintf("Generated tool %d. It echoes its arguments; the second sentence is for whoever reads on.", n)
	return tool{name: name, doc: doc, schema: `"city":{"type":"string"},"days":{"type":"integer","minimum":1.0}`}.entry()
}

func resource(uri string) entry {
	return entry{uri, fmt.Appendf(nil, `{%s,"mimeType":"text/plain","uri":%s,"name":%s,"size":12}`, grease, quote(uri), quote(lastPart(uri)))}
}

func template(uri string) entry {
	return entry{uri, fmt.Appendf(nil, `{%s,"name":"item","uriTemplate":%s,"description":"One item by id."}`, grease, quote(uri))}
}

func prompt(name string) entry {
	return entry{name, fmt.Appendf(nil, `{%s,"arguments":[{"required":true,"name":"who",%s}],"name":%s,"description":"Greet someone."}`,
		grease, grease, quote(name))}
}

func lastPart(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }

func (o *offer) add(list string, e entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists[list] = append(o.lists[list], e)
}

func (o *offer) remove(list, key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists[list] = slices.DeleteFunc(o.lists[list], func(e entry) bool { return e.key == key })
}

func (o *offer) has(list, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.lists[list], func(e entry) bool { return e.key == key })
}

// matches reports whether uri begins like one of the templates.
func (o *offer) matches(uri string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.lists["resourceTemplates"], func(e entry) bool {
		prefix, _, _ := strings.Cut(e.key, "{")
		return prefix != "" && strings.HasPrefix(uri, prefix)
	})
}

const cursorPrefix = "page/"

// slice returns one page of a list and the cursor of the next, "" for the last page.
func (o *offer) slice(list, cursor string) (page []entry, next string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, from := o.lists[list], 0
	if cursor != "" {
		from, err = strconv.Atoi(strings.TrimPrefix(cursor, cursorPrefix))
		if err != nil || from < 0 || from > len(all) {
			return nil, "", failure(-32602, "Invalid cursor: %s", cursor)
		}
	}
	to := len(all)
	if o.page > 0 && from+o.page < to {
		to = from + o.page
		next = cursorPrefix + strconv.Itoa(to)
	}
	return slices.Clone(all[from:to]), next, nil
}

// list answers one page of a list.
func (c *call) list(kind string) (json.RawMessage, error) {
	var params struct{ Cursor string }
	if err := decode(c.Params, &params); err != nil {
		return nil, err
	}
	page, next, err := c.peer.fake.offer.slice(kind, params.Cursor)
	if err != nil {
		return nil, err
	}
	page = slices.DeleteFunc(page, func(e entry) bool { return !c.mayUse(e.key) })
	return listResult(kind, page, next), nil
}

// mayUse reports whether an entry is listed to the client, see the flag regard.
func (c *call) mayUse(key string) bool {
	_, needs, ok := strings.Cut(key, "needs_")
	if !ok || c.peer.fake.cfg.regard == "" {
		return true
	}
	declared := c.about.Capabilities
	if !c.modern() {
		c.peer.mu.Lock()
		declared = c.peer.declared
		c.peer.mu.Unlock()
	}
	var has struct {
		Roots, Sampling json.RawMessage
		Elicitation     *struct{ URL json.RawMessage }
		Extensions      map[string]json.RawMessage
	}
	_ = json.Unmarshal(declared, &has)
	switch needs {
	case "roots":
		return has.Roots != nil
	case "sampling":
		return has.Sampling != nil
	case "ui":
		return has.Extensions["io.modelcontextprotocol/ui"] != nil
	}
	return has.Elicitation != nil && (needs == "elicitation" || has.Elicitation.URL != nil)
}

func listResult(kind string, page []entry, next string) json.RawMessage {
	raws := make([]string, len(page))
	for i, e := range page {
		raws[i] = string(e.raw)
	}
	cursor := ""
	if next != "" {
		cursor = fmt.Sprintf(`,"nextCursor":%s`, quote(next))
	}
	return fmt.Appendf(nil, `{%s,%q:[%s]%s}`, grease, kind, strings.Join(raws, ","), cursor)
}
