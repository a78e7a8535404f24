// Command scale computes the tables of docs/scale.md: the costs and the behavior of
// clusters with up to 100 replicas, 10,000 hosts and 1,000 servers.
//
//	placement  how evenly servers are placed, and how many move when replicas come and go
//	failover   time from a replica's death until its servers can run elsewhere, measured
//	           with package cluster in real time and all replicas in this process
//	traffic    what membership costs the shared state and each replica, measured together
//	           with failover
//	model      processors and memory of replicas, computed from the costs of a single one
//	growth     time and memory of one dynmcp with more and more tools, servers, sessions,
//	           bytes in a message and calls in flight
//	idle       time of a call beside 10,000 idle sessions and 100 stored servers
//
// Usage, from the root of the module, about fifteen minutes:
//
//	go run -C bench ./scale
//	go run -C bench ./scale -only model -hosts 2000 -calls 0.5 -servers 100
//	go run -C bench ./scale -only placement -write
//
// The numbers that the model starts from are measured by go run -C bench . -only capacity.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
)

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "placement, failover (with traffic), model, growth (or growth tools, and so on) or idle")
	rounds := flag.Int("rounds", 3, "growth and idle: measurements of each figure")
	kills := flag.Int("kills", 20, "failover: replicas that fail within ten seconds, where there are enough")
	write := flag.Bool("write", false, "replace the tables of docs/scale.md by those that are printed")
	m := modelFlags(flag.CommandLine)
	flag.Parse()
	if err := programs.EnterRoot(); err != nil {
		log.Fatal("scale: ", err)
	}
	name, thing, _ := strings.Cut(*only, " ")
	for _, step := range []struct {
		name string
		run  func(io.Writer) error
	}{
		{"placement", func(w io.Writer) error { placement(w); return nil }},
		{"failover", func(w io.Writer) error { return failover(w, *kills) }},
		{"model", func(w io.Writer) error { m.print(w); return nil }},
		{"growth", func(w io.Writer) error { return growth(w, thing, *rounds) }},
		{"idle", func(w io.Writer) error { return idle(w, *rounds) }},
	} {
		if name != "" && name != step.name {
			continue
		}
		var table bytes.Buffer
		err := step.run(io.MultiWriter(os.Stdout, &table))
		if err == nil && *write && thing == "" {
			err = writeTable(document, step.name, table.String())
		}
		if err != nil {
			log.Fatal("scale: ", err)
		}
	}
}

// document is the file with the tables.
const document = "docs/scale.md"

// writeTable replaces the table of this name in a file, if there is one.
func writeTable(file, name, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begins := fmt.Sprintf("<!-- made by: go run -C bench ./scale -only %s -->\n", name)
	before, rest, has := strings.Cut(string(text), begins)
	_, after, ends := strings.Cut(rest, "<!-- end -->")
	if !has || !ends {
		return nil
	}
	return os.WriteFile(file, fmt.Appendf(nil, "%s%s\n```\n%s\n```\n\n<!-- end -->%s", before, begins, strings.TrimRight(table, "\n"), after), 0o644)
}
