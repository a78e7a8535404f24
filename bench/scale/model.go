package main

import (
	"flag"
	"fmt"
	"io"
)

// A model is what a deployment has to do, and what each part of that takes. The defaults
// of the second part were measured on two cores; docs/scale.md says how to do it again.
type model struct {
	hosts   int
	calls   float64 // of each host, a second
	servers int     // that run, each once in the cluster
	shares  float64 // of requests that arrive where their session is: a connection that is kept leads there

	base    float64 // MB of a replica that does nothing
	session float64 // KB of a session
	stream  float64 // KB more, with its stream open
	server  float64 // KB of a server that runs, in dynmcp and its guard
	process float64 // MB of the processes of such a server itself
	call    float64 // µs of a processor for a call
	hop     float64 // µs of processors more, on both replicas together, where it goes on to another
	beats   float64 // µs of a processor a second, for each other member
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
	// go run -C bench ./savings: ten servers of npm
	f.Float64Var(&m.process, "process", 100, "model: MB of a server's own processes")
	// go run -C bench ./cluster -only hop: what a call to a server of another replica uses more
	f.Float64Var(&m.hop, "hop", 80, "model: µs of CPU more for each hop")
	// go run -C bench ./scale -only failover: the last column, by the replicas
	f.Float64Var(&m.beats, "beats", 15, "model: µs of CPU a second for each member")
	return m
}

// A need is what one replica of so many has to have.
type need struct {
	sessions, calls, servers float64
	hops                     float64 // of a call
	cores                    float64
	memory, servers0         float64 // MB: of dynmcp and its guards, and of the servers themselves
}

func (m *model) of(replicas int) need {
	r := float64(replicas)
	other := 1 - 1/r // that something is on another replica
	n := need{
		sessions: float64(m.hosts) / r,
		calls:    float64(m.hosts) * m.calls / r,
		servers:  float64(m.servers) / r,
		hops:     other*(1-m.shares) + other,
	}
	n.cores = (n.calls*(m.call+n.hops*m.hop) + r*m.beats) / 1e6
	n.memory = m.base + (n.sessions*(m.session+m.stream)+n.servers*m.server)/1024
	n.servers0 = n.servers * m.process
	return n
}

func (m *model) print(w io.Writer) {
	fmt.Fprintf(w, "model: %d hosts that call %.2g times a second, %d servers; what one replica needs\n", m.hosts, m.calls, m.servers)
	fmt.Fprintf(w, "  %8s %10s %10s %10s %10s %10s %14s %16s\n", "replicas", "sessions", "calls/s", "servers", "hops/call", "cores", "dynmcp MB", "its servers MB")
	for _, replicas := range []int{1, 3, 10, 30, 100} {
		n := m.of(replicas)
		fmt.Fprintf(w, "  %8d %10.0f %10.0f %10.0f %10.2f %10.2f %14.0f %16.0f\n", replicas, n.sessions, n.calls, n.servers, n.hops, n.cores, n.memory, n.servers0)
	}
}
