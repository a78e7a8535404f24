package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestAbilities(t *testing.T) {
	for declared, want := range map[string]Abilities{
		``: 0, `{}`: 0, `{"roots":null,"sampling":true}`: 0, `{"tasks":{}}`: 0,
		`{"roots":{}}`:                ableRoots,
		`{"sampling":{}}`:             ableSampling,
		`{"sampling":{"tools":{}}}`:   ableSampling | ableSamplingTools,
		`{"elicitation":{}}`:          ableForms,
		`{"elicitation":{"form":{}}}`: ableForms,
		`{"elicitation":{"url":{}}}`:  ableURLs,
		`{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{}}}`: AbleToAll,
		`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":[]},"io.modelcontextprotocol/tasks":{}}}`:                                        ableApps,
	} {
		got := AbilitiesOf(json.RawMessage(declared))
		if got != want {
			t.Errorf("%s: got %b, want %b", declared, got, want)
		}
		if again := AbilitiesOf(got.Capabilities()); again != got {
			t.Errorf("%s is declared as %s, which is %b", declared, got.Capabilities(), again)
		}
	}
}

// listedTo is the listing of a server that lists tool i to hosts that have the abilities needs[i].
func listedTo(able Abilities, needs []Abilities) *Listing {
	l := &Listing{Declared: able, Info: json.RawMessage(`{"name":"s","version":"1"}`)}
	for i, need := range needs {
		if able&need == need {
			l.Tools = append(l.Tools, fmt.Appendf(nil, `{"name":"t%d","inputSchema":{"type":"object"}}`, i))
			l.Prompts = append(l.Prompts, fmt.Appendf(nil, `{"name":"t%d"}`, i))
			l.Resources = append(l.Resources, fmt.Appendf(nil, `{"name":"t","uri":"t%d"}`, i))
			l.Templates = append(l.Templates, fmt.Appendf(nil, `{"name":"t","uriTemplate":"t%d{x}"}`, i))
		}
	}
	return l
}

// Whoever lists a server, and in whatever order, a host sees the list of the last host with its
// abilities, of each kind of entry.
func TestListingsOfHostsWithDifferentAbilities(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		needs := make([]Abilities, 6)
		for i := range needs {
			some := Abilities(random.UintN(uint(AbleToAll) + 1))
			needs[i] = some & Abilities(random.UintN(uint(AbleToAll)+1))
		}
		c := New()
		c.Declare([]Server{{Name: "s"}})
		listed := map[Abilities]bool{}
		for range 6 {
			able := Abilities(random.UintN(uint(AbleToAll) + 1))
			c.Put("s", c.Index("s", listedTo(able, needs)))
			listed[able] = true
			for able := range listed {
				v := c.Views().For(able)[NoTasks]
				if c.Views().For(able)[NoTasks] != v {
					t.Fatal("the views are made again")
				}
				want := listedTo(able, needs)
				var names []string
				for _, tool := range v.Tools() {
					names = append(names, "{"+tool.Leaf+"}")
				}
				for key, lists := range map[string][2][]json.RawMessage{
					"prompts": {v.Prompts(), want.Prompts}, "resources": {v.Resources(), want.Resources}, "templates": {v.Templates(), want.Templates},
				} {
					if got, want := sortedTexts(lists[0]), sortedTexts(lists[1]); !slices.Equal(got, want) {
						t.Fatalf("seed %d, host with %b: %s are %s, want %s", seed, able, key, got, want)
					}
				}
				if len(names) != len(want.Tools) {
					t.Fatalf("seed %d, host with %b: tools are %s, want %s", seed, able, names, want.Tools)
				}
				for _, tool := range want.Tools {
					name, _ := wire.Text(wire.Get(tool, "name"))
					if !slices.Contains(names, "{"+name+"}") {
						t.Fatalf("seed %d, host with %b: tools are %s, want %s", seed, able, names, want.Tools)
					}
				}
			}
		}
	}
}

func sortedTexts(list []json.RawMessage) (texts []string) {
	for _, e := range list {
		texts = append(texts, string(e))
	}
	slices.Sort(texts)
	return texts
}

// What is known of hosts with other abilities ends with another version of the server, and with
// another definition of an entry that both list.
func TestListingsThatAreNotJoined(t *testing.T) {
	needs := []Abilities{0, ableSampling}
	for name, change := range map[string]func(*Listing){
		"another version":     func(l *Listing) { l.Info = json.RawMessage(`{"name":"s","version":"2"}`) },
		"another definition":  func(l *Listing) { l.Tools[0] = json.RawMessage(`{"name":"t0","inputSchema":{}}`) },
		"a list that failed":  func(l *Listing) { l.Failed = map[string]string{"prompts/list": "no"} },
		"unknown declaration": func(l *Listing) { l.Declared = AbleToAll + 1 },
	} {
		known, l := listedTo(ableSampling, needs), listedTo(0, needs)
		change(l)
		if name == "unknown declaration" {
			l.Declared, known.Declared = 0, l.Declared
		}
		if joined := l.with(known); len(joined.Tools) != 1 || len(joined.Unlisted) != 0 {
			t.Errorf("%s: joined to %d tools, unlisted %v", name, len(joined.Tools), joined.Unlisted)
		}
	}
}

// A tool that is only for views is on the direct list of hosts that show views, and nowhere else,
// also if it is stored.
func TestToolsForViews(t *testing.T) {
	t.Parallel()
	tools := raws(`{"name":"poll","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}`,
		`{"name":"show","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app","model"]}}}`, `{"name":"odd","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":"app"}}}`)
	c := New()
	c.Declare([]Server{{Name: "s", Lazy: true}})
	check := func(state string) {
		for able, want := range map[Abilities]string{AbleToAll: "s__poll s__show s__odd ", AbleToAll &^ ableApps: "s__show s__odd "} {
			v := c.Views().For(able)[NoTasks]
			if info, _ := v.Server("s"); info.Tools != 2 {
				t.Errorf("%s, %b: %d tools", state, able, info.Tools)
			}
			listed := ""
			for _, tool := range v.Listed() {
				listed += tool.Direct + " "
			}
			_, direct := v.Direct("s__poll")
			_, called := v.Called("s/poll")
			_, leaf := v.Called("poll")
			if listed != want || direct != (able == AbleToAll) || called || leaf || len(v.Tools()) != 2 {
				t.Errorf("%s, %b: listed %q, direct %t, called %t or %t", state, able, listed, direct, called, leaf)
			}
			if found := v.Texts().Found(Search{Queries: []string{"poll"}}); strings.Contains(found, "s/poll") {
				t.Errorf("%s, %b: %s", state, able, found)
			}
		}
	}
	c.Remember(map[string]*Stored{"s": {Count: 3, ForViews: 1, ReadTools: func() []json.RawMessage { return tools }}})
	check("stored")
	put(c, "s", &Listing{Tools: tools})
	check("listed")
}
