// Command soak runs long tests with real processes and prints counts. Its steps:
//
//	kills     dynmcp gets SIGKILL or SIGTERM while its servers have process trees with
//	          double forks, their own sessions and ignored signals. Judged: no process
//	          of these is left after three seconds.
//	guards    servers have process trees that are hard to end. Their guards get SIGKILL,
//	          SIGSEGV, SIGABRT or SIGSTOP, each at a random time. Then the stdin of
//	          dynmcp is closed, or dynmcp gets SIGTERM, or SIGKILL once it has ended the
//	          processes of dead guards. Judged: it does end these, and no process is left
//	          after three seconds.
//	calls     numbered calls, one in ten to a server that misbehaves. Judged: each call
//	          has one answer, either its own or a failure with the outcome; calls to
//	          servers that answer do not fail; in runs of 200,000 calls and more, RSS
//	          grows by less than 8 MB or a tenth after the first 100,000; goroutines,
//	          descriptors, children and processes are as many as in a dynmcp without
//	          calls. If an answer takes two minutes, the step ends and prints the missing
//	          calls and the stacks of dynmcp.
//	gateway   the same servers behind dynmcp serve --http: sessions that nobody ends, then
//	          calls of a hundred hosts of both eras, some of which are broken off. Judged:
//	          the same as for calls, and also that each answer is in the response to its
//	          call, and that no session is left.
//	shared    a hundred good hosts call before, during and after attacks on the gateway,
//	          first with a user each and then with an address each. The attacks are 5,000
//	          bad connections, 20,000 sessions of one user, 200 unread answers of 9 MB and
//	          floods of each kind of notification, or fewer with -short. Judged: no call
//	          fails, except that one in a hundred may be not_sent and one newcomer in
//	          twenty may be turned away; p99 and the calls of newcomers grow little more
//	          than a bare server's; memory is bounded; in the end no session is left, and
//	          resources are as in a fresh dynmcp.
//	deaths    servers of four dynmcp record each call and die before they answer. Judged
//	          for each call: it ran exactly once, and its outcome is unknown.
//	sessions  an HTTP server repeatedly forgets its session during calls. It answers those,
//	          refuses further ones with 404, and records which it ran. Judged for each
//	          call: it ran exactly once and has its own answer.
//	hostile   one server of 20 floods, hangs, crashes, sends 100 MB or stops reading. The
//	          times of calls to the others with and without it are printed, measured in
//	          turn, so that the speed of the machine drifts for both. Judged: all have the
//	          right answer.
//	lists     the lists of tools, prompts, resources and templates are read repeatedly,
//	          while one of four servers adds malformed entries and announces each, and the
//	          config is reloaded. Judged: each entry of the other servers is in each list
//	          once, and no malformed entry is in any.
//	logins    four dynmcp share logins to ten servers, whose authorization server accepts
//	          a refresh token once. Access tokens are invalidated repeatedly, and logins
//	          are sometimes revoked. Judged: calls only fail if a login is needed, the four
//	          together refresh each token once, no refresh token is used twice, and no
//	          secret of a login is where canaries may not be, at log level debug.
//	canaries  16 secrets in all places of a config. The servers repeat them in all
//	          encodings on stderr, in crashes, bad answers and HTTP errors, at log level
//	          debug. Judged: no part of a secret is in the log of dynmcp, in its output to
//	          the host except for results of servers, in files, in the stacks that SIGQUIT
//	          prints, or in a command line.
//
// Usage, from the root of the module, on Linux:
//
//	go run -C bench ./soak                                                 three minutes
//	go run -C bench ./soak -selftest                                       check that faults are found
//	go run -C bench ./soak -only calls,deaths -calls 200000                some steps
//	go run -C bench ./soak -kills 1000 -guards 100 -calls 1000000 \
//	    -gateway 1000000 -abandoned 10000 \
//	    -deaths 10000 -sessions 100000 -lists 10000 -logins 500         before a release
//
// Repeat a step that failed with -record DIR and -only. dynmcp inspect shows the recorded
// messages, and dynmcp replay replaces the servers. By default nothing is recorded, because
// recording takes memory, which is judged.
//
// Goroutines are counted in the stacks that dynmcp prints after SIGQUIT. All steps print
// times, and only shared judges them. A wrong count is printed after FAIL, and the exit
// status is then 1. Read host.go next, and then the file of a step.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

// A soak has the paths of the programs and the failures so far.
type soak struct {
	verdict.Verdict
	dir, dynmcp, fake string
	recordings        string // directory for recordings of each dynmcp on pipes; "" is none
}

func main() {
	log.SetFlags(0)
	kills := flag.Int("kills", 24, "kills of each kind")
	guards := flag.Int("guards", 8, "trials with guards that are killed, for each end of dynmcp")
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

// run takes the steps in only, or all if it is "". It reports whether nothing failed.
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
