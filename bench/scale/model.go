package main

import (
	"flag"
	"fmt"
	"io"
)

// A model has the load of a deployment, and the cost of each unit of it. The default costs
// were measured on two cores. docs/scale.md tells how to measure them again.
type model struct {
	hosts   int
	calls   float64 // of each host per second
	servers int     // running, each once in the cluster
	shares  float64 // share of requests that arrive at the replica that has their session

	base    float64 // MB of an idle replica
	session float64 // KB of a session
	stream  float64 // KB more if its stream is open
	server  float64 // KB that dynmcp and the guard use for a running server
	process float64 // MB of the server's own processes
	call    float64 // µs of CPU for a call
	hop     float64 // µs of CPU more, on both replicas together, if it is forwarded
	beats   float64 // µs of CPU per second for each other member
}

func modelFlags(f *flag.FlagSet) *model {
	m := &model{}
	f.IntVar(&m.hosts, "hosts", 10_000, "model: hosts")
	f.Float64Var(&m.calls, "calls", 0.2, "model: calls of each host, a second")
	f.IntVar(&m.servers, "servers", 1_000, "model: servers that run, each once in the cluster")
	f.Float64Var(&m.shares, "kept", 0, "model: share of requests that arrive at the replica that has their session; 0 is the worst case")
	// go run -C bench . -only capacity
	f.Float64Var(&m.base, "base", 32, "model: MB of a replica without sessions")
	f.Float64Var(&m.session, "session", 16, "model: KB of a session")
	f.Float64Var(&m.stream, "stream", 54, "model: KB more of one whose stream is open")
	f.Float64Var(&m.server, "server", 995, "model: KB of a server that runs, in dynmcp and its guard")
	f.Float64Var(&m.call, "call", 40, "model: µs of CPU of a call")
	// go run -C bench ./savings: ten servers from npm
	f.Float64Var(&m.process, "process", 100, "model: MB of a server's own processes")
	// go run -C bench ./cluster -only hop: the additional cost of a call to a server of another replica
	f.Float64Var(&m.hop, "hop", 80, "model: µs of CPU more for each hop")
	// go run -C bench ./scale -only failover: the last column, divided by the number of replicas
	f.Float64Var(&m.beats, "beats", 15, "model: µs of CPU a second for each member")
	return m
}

// A need is what one replica must provide.
type need struct {
	sessions, calls, servers float64
	hops                     float64 // per call
	cores                    float64
	dynmcp, processes        float64 // MB of dynmcp with its guards, and of the servers' own processes
}

func (m *model) of(replicas int) need {
	r := float64(replicas)
	other := 1 - 1/r // probability that something is on another replica
	n := need{
		sessions: float64(m.hosts) / r,
		calls:    float64(m.hosts) * m.calls / r,
		servers:  float64(m.servers) / r,
		hops:     other*(1-m.shares) + other,
	}
	n.cores = (n.calls*(m.call+n.hops*m.hop) + r*m.beats) / 1e6
	n.dynmcp = m.base + (n.sessions*(m.session+m.stream)+n.servers*m.server)/1024
	n.processes = n.servers * m.process
	return n
}

func (m *model) print(w io.Writer) {
	fmt.Fprintf(w, "model: %d hosts that call %.2g times a second, %d servers; what one replica needs\n", m.hosts, m.calls, m.servers)
	fmt.Fprintf(w, "  %8s %10s %10s %10s %10s %10s %14s %16s\n", "replicas", "sessions", "calls/s", "servers", "hops/call", "cores", "dynmcp MB", "its servers MB")
	for _, replicas := range []int{1, 3, 10, 30, 100} {
		n := m.of(replicas)
		fmt.Fprintf(w, "  %8d %10.0f %10.0f %10.0f %10.2f %10.2f %14.0f %16.0f\n", replicas, n.sessions, n.calls, n.servers, n.hops, n.cores, n.dynmcp, n.processes)
	}
}
