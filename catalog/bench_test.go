package catalog

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// madeCatalog holds n tools spread over servers of 26 tools each.
func madeCatalog(n int) *Catalog {
	c := New()
	listings := map[string]*Listing{}
	var servers []Server
	for i := range n {
		name := fmt.Sprintf("server-%03d", i/26)
		l := listings[name]
		if l == nil {
			l = &Listing{}
			listings[name] = l
			servers = append(servers, Server{Name: name})
		}
		l.Tools = append(l.Tools, json.RawMessage(fmt.Sprintf(
			`{"name":"%s_%s_%d","description":"Lets you %s the %s of project %d. Answers a list of what changed, with the time of each change.",`+
				`"inputSchema":{"type":"object","properties":{"project":{"type":"string","description":"Key of the project"},"limit":{"type":"integer"}}}}`,
			verbs[i%len(verbs)], nouns[i%len(nouns)], i, verbs[i%len(verbs)], nouns[i%len(nouns)], i)))
	}
	c.Declare(servers)
	for name, l := range listings {
		put(c, name, l)
	}
	return c
}

var (
	verbs = []string{"list", "create", "delete", "update", "search", "rename", "export"}
	nouns = []string{"issue", "branch", "dashboard", "invoice", "ticket", "bucket", "meeting", "channel", "alert", "page", "deployment"}
)

func BenchmarkPutOneOfFifty(b *testing.B) {
	c := madeCatalog(1300)
	l := c.parts["server-007"].index.listing
	b.ReportAllocs()
	for b.Loop() {
		put(c, "server-007", l)
	}
}

func BenchmarkDescribe(b *testing.B) {
	v := madeCatalog(1300).View()
	for _, limit := range []int{2048, 20000, 0} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Texts().Describe(limit)
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	v := madeCatalog(1300).View()
	b.ReportAllocs()
	for b.Loop() {
		v.Find("rename the dashboards of a project", 10)
	}
}

func BenchmarkUnknown(b *testing.B) {
	v := madeCatalog(1300).View()
	b.ReportAllocs()
	for b.Loop() {
		v.Texts().Unknown("server-010/serach_invoice_270")
	}
}

func BenchmarkTool(b *testing.B) {
	v := madeCatalog(1300).View()
	name := v.Tools()[700].Name
	b.ReportAllocs()
	for b.Loop() {
		v.Tool(name)
	}
}

func BenchmarkDefinition(b *testing.B) {
	v := madeCatalog(1300).View()
	b.ReportAllocs()
	for b.Loop() {
		v.Tools()[700].Definition()
	}
}

// BenchmarkReal reads the 38 real catalogues, and reports what they cost to
// hold beside their own bytes.
func BenchmarkReal(b *testing.B) {
	servers, listings := realServers(b)
	bytes := 0
	for _, l := range listings {
		for _, raw := range l.Tools {
			bytes += len(raw)
		}
	}
	var c *Catalog
	before := heapInUse()
	for b.Loop() {
		c = New()
		c.Declare(servers)
		for i, s := range servers {
			put(c, s.Name, listings[i])
		}
	}
	b.ReportMetric(float64(heapInUse()-before)/1024, "KiB-held")
	b.ReportMetric(float64(bytes)/1024, "KiB-listed")
	runtime.KeepAlive(c)
}

func BenchmarkRealDescribe(b *testing.B) {
	v := realCatalog(b).View()
	for b.Loop() {
		v.Texts().Describe(2048)
	}
}

func BenchmarkRealFind(b *testing.B) {
	v := realCatalog(b).View()
	for b.Loop() {
		v.Find("Create a new pull request from my branch and ask for a review", 10)
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// hundredServers holds 100 servers of 50 real tools each, which earlier runs listed.
func hundredServers(b testing.TB) *Catalog {
	_, listings := realServers(b)
	var all []json.RawMessage
	for _, l := range listings {
		all = append(all, l.Tools...)
	}
	c := New()
	var servers []Server
	stored := map[string]*Stored{}
	for i := range 100 {
		name := fmt.Sprintf("server-%02d", i)
		servers = append(servers, Server{Name: name, Lazy: true, Description: "Does things."})
		var tools []json.RawMessage
		for j := range 50 {
			raw := all[(i*50+j)%len(all)]
			name, _ := wire.Text(wire.Get(raw, "name"))
			tools = append(tools, setText(raw, "name", fmt.Sprintf("%s_%d", name, j)))
		}
		stored[name] = &Stored{Count: len(tools), ReadTools: func() []json.RawMessage { return tools }}
	}
	c.Declare(servers)
	c.Remember(stored)
	return c
}

// BenchmarkFindAmongFiveThousand searches stored tools. The first query reads them
// and makes the index; it is reported apart, with what is held from then on.
func BenchmarkFindAmongFiveThousand(b *testing.B) {
	c := hundredServers(b)
	before := heapInUse()
	began := time.Now()
	v := c.View()
	v.Find("create an issue", 10)
	first := time.Since(began)
	held := heapInUse() - before
	queries := []string{"Create a new pull request from my branch and ask for a review", "take a screenshot of a web page", "list the issues of a project", "read a file", "weather"}
	for i := 0; b.Loop(); i++ {
		v.Texts().Found(Search{Queries: []string{queries[i%len(queries)]}})
	}
	b.ReportMetric(float64(first.Milliseconds()), "ms-first")
	b.ReportMetric(float64(held)/1024, "KiB-held")
	runtime.KeepAlive(c)
}
