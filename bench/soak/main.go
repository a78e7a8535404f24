// Command soak tries for long what the tests try for a moment, on real
// processes, and prints what it counted. Its steps:
//
//	kills     dynmcp is killed, with SIGKILL and with SIGTERM, while process trees
//	          with double forks, sessions of their own and deaf ears run below
//	          it. Judged: no process of theirs is left after three seconds.
//	guards    dynmcp has servers with trees that are hard to end, and the guards that
//	          it puts before them get SIGKILL, SIGSEGV, SIGABRT or SIGSTOP, each at a
//	          moment of its own; then its stdin ends, or it gets SIGTERM, or SIGKILL
//	          once it has dealt with what dead guards left. Judged: it does deal with
//	          that, and no process is left after three seconds.
//	self      configs that reach themselves by sh, env, another name of the program,
//	          dynmcp -- dynmcp -c, other configs, each in a PID namespace. Judged:
//	          there are never more than four of dynmcp in a chain at a time, its
//	          guards not counted, and no process is left when the outermost gets
//	          EOF or SIGKILL. Where no PID namespace may be made it is NOT RUN, and
//	          said to be so once more at the end.
//	calls     calls with a number each, one in ten to a server that misbehaves.
//	          Judged: every call has one answer, its own or a failure that says
//	          whether it ran, and those of servers that answer do not fail; RSS
//	          grows by less than 8 MB or a tenth after the first 100,000 calls, in
//	          runs of 200,000 and more; goroutines, descriptors, children and
//	          processes are at the end as many as in a dynmcp that made no call.
//	          An answer that does not come for two minutes ends the step: it
//	          prints what calls are missing and the stacks of dynmcp.
//	gateway   the same servers behind dynmcp serve --http: sessions that nobody ends,
//	          then calls of a hundred hosts of both eras, which break off one more now
//	          and then. Judged: what is judged of calls, each answer is in the
//	          response to its call, and no session is left.
//	shared    a hundred good hosts call before, during and after attacks on the gateway,
//	          once with a user each and once with an address each: 5,000 bad connections,
//	          20,000 sessions of one user, 200 unread answers of 9 MB, floods of each
//	          kind of notification; -short has less. Judged: their calls do not fail but
//	          one in a hundred with not_sent, and one newcomer in twenty that is not
//	          heard; p99 and the calls of newcomers take little more than before, as
//	          the machine does; memory is bounded; then no session is left, and what is
//	          held is as in a fresh one.
//	deaths    a server that writes down each call and dies before it answers,
//	          below four dynmcp at once. Judged call by call: it ran exactly once,
//	          and its outcome is said to be unknown.
//	sessions  calls to an HTTP server that forgets its session again and again while
//	          some are under way: it answers those, refuses what comes next with 404,
//	          and writes down which it ran. Judged call by call: it ran exactly once,
//	          and has its own answer; none is refused and run.
//	hostile   one server of 20 floods, hangs, crashes, sends 100 MB, stops reading:
//	          the times of the calls of the others with and without it, in turn
//	          and in one run, so that a machine whose speed drifts drifts for
//	          both. Judged: they are all answered, and right.
//	lists     the lists of tools, prompts, resources and templates are read again and
//	          again while one of four servers fills its own with malformed entries
//	          and announces each, and the config is reloaded with others. Judged:
//	          every entry of the other servers is in every list, once, and no
//	          malformed one in any.
//	logins    four dynmcp share the logins at ten servers behind an authorization server
//	          whose refresh tokens are good once; the access tokens are taken from
//	          them again and again, now and then the logins. Judged: no call fails but
//	          for want of a login, each token is refreshed once by all four together,
//	          no refresh token is used twice, and nothing that a login involves is
//	          where canaries must not be, at log level debug.
//	canaries  16 secrets in every place that a config has for them, in the hands of
//	          servers that repeat them in all codings on stderr, in crashes, bad
//	          answers and HTTP errors, at log level debug, the lowest there is.
//	          Judged: none is in what dynmcp logs, tells the host (but for results
//	          of servers), writes to files, prints of its stacks when SIGQUIT ends
//	          it, or shows in a command line, in whole or in part.
//
// Usage, from the root of the module, on Linux:
//
//	go run -C bench ./soak                                                 three minutes
//	go run -C bench ./soak -selftest                                       that the judge finds what is wrong
//	go run -C bench ./soak -only calls,deaths -calls 200000                some steps
//	go run -C bench ./soak -kills 1000 -guards 100 -self 10 -calls 1000000 \
//	    -gateway 1000000 -abandoned 10000 \
//	    -deaths 10000 -sessions 100000 -lists 10000 -logins 500         what a release needs
//
// A step that failed is repeated with -record DIR and -only. dynmcp inspect shows what passed,
// and dynmcp replay stands in for its servers. Without -record nothing is recorded, since
// that takes memory, which is judged.
//
// Goroutines are counted from outside: dynmcp has no port for that, but prints
// its stacks when SIGQUIT ends it. Times are printed, and judged by shared alone. A count
// that is not what it must be is printed behind FAIL, and the exit status is
// then 1. Read next: host.go, then the file of a step.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

// A soak is where the programs are and what went wrong so far.
type soak struct {
	verdict.Verdict
	dir, dynmcp, fake string
	recordings        string // where each dynmcp on pipes is recorded; "" is nowhere
}

func main() {
	log.SetFlags(0)
	kills := flag.Int("kills", 24, "kills of each kind")
	guards := flag.Int("guards", 8, "trials with guards that are killed, for each end of dynmcp")
	self := flag.Int("self", 1, "chains of configs that reach themselves, of each kind and for each end")
	atOnce := flag.Int("parallel", 8, "kills at a time, and twice the trials with guards")
	calls := flag.Int("calls", 20000, "calls under faults")
	gatewayCalls := flag.Int("gateway", 10000, "calls of a hundred hosts over HTTP under faults")
	abandoned := flag.Int("abandoned", 1000, "sessions over HTTP that nobody ends")
	deaths := flag.Int("deaths", 50, "calls whose server dies before it answers")
	others := flag.Int("others", 800, "calls in each round beside a hostile server")
	lists := flag.Int("lists", 400, "lists that are read while a server has malformed ones")
	sessions := flag.Int("sessions", 2000, "calls to a server that forgets its sessions")
	logins := flag.Int("logins", 20, "access tokens that are taken away")
	short := flag.Bool("short", false, "smaller attacks, as where all steps are taken")
	only := flag.String("only", "", "the `steps` to take, separated by commas (default all)")
	selftest := flag.Bool("selftest", false, "judge programs with faults in them, which must be found, and take no other `steps`")
	s := &soak{}
	flag.StringVar(&s.recordings, "record", "", "the `directory` for recordings of each dynmcp on pipes: repeat a step with it that failed")
	flag.Parse()
	if *selftest {
		*only = "selftest"
	}
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	ok, err := s.run(*only, []verdict.Step{
		{Name: "kills", Run: func() error { return s.kills(*kills, *atOnce) }},
		{Name: "guards", Run: func() error { return s.guards(*guards, max(*atOnce/2, 1)) }},
		{Name: "self", Run: func() error { return s.self(*self) }},
		{Name: "calls", Run: func() error { return s.calls(*calls) }},
		{Name: "gateway", Run: func() error { return s.gateway(*gatewayCalls, *abandoned) }},
		{Name: "shared", Run: func() error { return s.shared(attacks(*short || *only == "")) }},
		{Name: "deaths", Run: func() error { return s.deaths(*deaths) }},
		{Name: "sessions", Run: func() error { return s.sessions(*sessions) }},
		{Name: "hostile", Run: func() error { return s.hostile(*others) }},
		{Name: "lists", Run: func() error { return s.lists(*lists) }},
		{Name: "logins", Run: func() error { return s.logins(*logins) }},
		{Name: "canaries", Run: s.canaries},
	})
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		os.Exit(1)
	}
}

// run takes the steps that only names, all for "". It reports whether
// everything is as it must be.
func (s *soak) run(only string, steps []verdict.Step) (ok bool, err error) {
	if only == "selftest" {
		steps = []verdict.Step{{Name: only, Run: s.selftest}}
	}
	if steps, err = verdict.Choose(only, steps); err != nil {
		return false, err
	}
	s.dir, err = programs.Build("./cmd/dynmcp", "./internal/mcptest/fakemcp")
	defer os.RemoveAll(s.dir)
	if err != nil {
		return false, err
	}
	s.dynmcp, s.fake = filepath.Join(s.dir, "dynmcp"), filepath.Join(s.dir, "fakemcp")
	for _, st := range steps {
		if err := st.Run(); err != nil {
			s.Fail("%s: %v", st.Name, err)
		}
	}
	return s.Close(), nil
}
