// Command scale computes the tables of docs/scale.md: what a cluster of a size costs and
// does, up to 100 replicas, 10,000 hosts and 1,000 servers.
//
//	placement  how evenly servers are placed, by the code that places them, and what moves
//	           when replicas come and go
//	failover   how long after a replica's death its servers can run elsewhere: the code of
//	           package cluster in real time, with all replicas in this process
//	traffic    what membership costs the shared state and each replica, counted in the same
//	           runs
//	model      processors and memory of replicas, from what one carries
//	growth     what one dynmcp takes as tools, servers, sessions, messages and calls in
//	           flight become more
//	idle       what a call takes beside 10,000 idle sessions and 100 stored servers
//
// Usage, from the root of the module, about fifteen minutes:
//
//	go run -C bench ./scale
//	go run -C bench ./scale -only model -hosts 2000 -calls 0.5 -servers 100
//
// What the model reckons with is measured by go run -C bench . -only capacity.
package main

import (
	"flag"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "placement, failover (with traffic), model, growth (or growth tools, and so on) or idle")
	rounds := flag.Int("rounds", 3, "growth and idle: measurements of each figure")
	kills := flag.Int("kills", 20, "failover: replicas that fail within ten seconds, where there are enough")
	m := modelFlags(flag.CommandLine)
	flag.Parse()
	if *only == "" || *only == "placement" {
		placement(os.Stdout)
	}
	if *only == "" || *only == "failover" {
		if err := failover(os.Stdout, *kills); err != nil {
			log.Fatal("scale: ", err)
		}
	}
	if *only == "" || *only == "model" {
		m.print(os.Stdout)
	}
	if thing, ok := strings.CutPrefix(*only, "growth"); ok || *only == "" {
		if err := growth(os.Stdout, strings.TrimSpace(thing), *rounds); err != nil {
			log.Fatal("scale: ", err)
		}
	}
	if *only == "" || *only == "idle" {
		if err := idle(os.Stdout, *rounds); err != nil {
			log.Fatal("scale: ", err)
		}
	}
}
