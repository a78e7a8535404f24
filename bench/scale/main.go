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
//
// Usage, from the root of the module, about five minutes:
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
)

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "placement, failover (with traffic) or model")
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
}
