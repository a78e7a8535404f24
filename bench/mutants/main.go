// Command mutants runs mutation tests; .ci/mutants, which runs it, explains their purpose. All mutants
// of a package are built into one program, and an environment variable selects one. Each is tested
// only with the tests that execute it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"iter"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
)

// living is the file of the mutants that may survive.
const living = ".ci/mutants.living"

// others matches files for other systems.
var others = regexp.MustCompile(`_(windows|darwin|other)\.go$`)

// rapid makes property tests draw the same values each time, and end with the first failure, without
// shrinking it or writing it to testdata.
var rapid = []string{"RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true"}

// slow are tests that are left out: a mutant would take them a minute.
var slow = map[string]string{"modules/sandbox/box": "TestAttempts"}

// A mutant is a replaced operator.
type mutant struct {
	id         int
	kind, file string
	line       int
	named      string // the line in the file living
	tests      []string
}

// A subject is a package under test.
type subject struct {
	name, dir, work string
	only            string // the file whose mutants are tested, "" for all
	tests           string // the path of the test program
	mutants         []*mutant
	took            map[string]time.Duration // by each test alone

	mu    sync.Mutex
	kills map[string]int // by file and test
}

func main() {
	log.SetFlags(0)
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		log.Fatal(err)
	}
	failed := false
	for _, name := range os.Args[1:] {
		name = filepath.ToSlash(filepath.Clean(name))
		fmt.Printf("\n== %s\n", name)
		only := ""
		if filepath.Ext(name) == ".go" {
			name, only = path.Dir(name), path.Base(name)
		}
		s := &subject{name: name, only: only, work: filepath.Join(work, filepath.Base(name)), took: map[string]time.Duration{}, kills: map[string]int{}}
		ok, err := s.judge()
		if err != nil {
			fmt.Println("FAIL:", err)
		}
		failed = failed || !ok || err != nil
	}
	if err := os.RemoveAll(work); err != nil || failed {
		os.Exit(1)
	}
}

// judge tests all mutants, and reports whether enough die and all others are listed.
func (s *subject) judge() (ok bool, err error) {
	if s.dir, err = filepath.Abs(s.name); err != nil {
		return false, err
	}
	if err := s.build(); err != nil {
		return false, err
	}
	if err := s.cover(); err != nil {
		return false, err
	}
	listed, err := s.listed()
	if err != nil {
		return false, err
	}
	ok = true
	died, lived := 0, 0
	for m, dead := range s.tried() {
		if dead {
			died++
			continue
		}
		lived++
		if i := slices.Index(listed, m.named); i >= 0 {
			listed = slices.Delete(listed, i, i+1)
			continue
		}
		ok = false
		fmt.Printf("LIVED, and is not in %s, line %d: %s\n", living, m.line, m.named)
	}
	for _, gone := range listed {
		fmt.Printf("is in %s, and died or is gone: %s\n", living, gone)
	}
	share := 100 * float64(died) / float64(max(1, died+lived))
	fmt.Printf("%d mutants, %d met by tests: %d died, %d lived: %.1f %%\n", len(s.mutants), died+lived, died, lived, share)
	if share < 90 {
		fmt.Println("FAIL: fewer than nine in ten died")
		ok = false
	}
	return ok, nil
}

// tried tests the mutants that are executed by tests, several at a time since tests mostly wait, and
// yields each with whether it died.
func (s *subject) tried() iter.Seq2[*mutant, bool] {
	type end struct {
		*mutant
		died bool
	}
	ends := make(chan end)
	go func() {
		defer close(ends)
		var g errgroup.Group
		g.SetLimit(runtime.NumCPU())
		for _, m := range s.mutants {
			if len(m.tests) > 0 && (s.only == "" || s.only == m.file) {
				g.Go(func() error {
					ends <- end{m, s.dies(m)}
					return nil
				})
			}
		}
		_ = g.Wait() // none fails
	}()
	return func(yield func(*mutant, bool) bool) {
		for e := range ends {
			if !yield(e.mutant, e.died) {
				panic("mutants are left")
			}
		}
	}
}

// listed returns the mutants of the package that may survive.
func (s *subject) listed() (all []string, err error) {
	text, err := os.ReadFile(living)
	for line := range strings.Lines(string(text)) {
		if file, _, _ := strings.Cut(line, " "); !strings.HasPrefix(line, "#") && path.Dir(file) == s.name && (s.only == "" || s.only == path.Base(file)) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all, err
}

// build builds the package's tests with all mutants. Mutants that do not compile are left out, such as
// those of additions of strings and of constant comparisons.
func (s *subject) build() error {
	out, err := exec.Command("go", "list", "-f", `{{join .GoFiles "\n"}}`, "./"+s.name).Output()
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(strings.Fields(string(out)), others.MatchString)
	if err := os.MkdirAll(s.work, 0o700); err != nil {
		return err
	}
	s.tests = filepath.Join(s.work, "tests")
	without := map[string]bool{}
	for {
		if err := s.write(files, without); err != nil {
			return err
		}
		said, err := exec.Command("go", "test", "-c", "-tags", "e2e", "-gcflags=-e", "-overlay", filepath.Join(s.work, "overlay.json"), "-o", s.tests, "./"+s.name).CombinedOutput()
		if err == nil {
			return nil
		}
		before := len(without)
		for _, m := range regexp.MustCompile(`(?m)^\S*?([^/\s]+\.go):(\d+):`).FindAllStringSubmatch(string(said), -1) {
			// An expression may begin lines before the error.
			line, _ := strconv.Atoi(m[2])
			for at := line; at > line-6 && (at == line || without[m[1]+":"+m[2]]); at-- {
				without[fmt.Sprintf("%s:%d", m[1], at)] = true
			}
		}
		if len(without) == before {
			return fmt.Errorf("%w\n%s", err, said)
		}
	}
}

// write writes the files with mutants, and the overlay that replaces the sources by them.
func (s *subject) write(files []string, without map[string]bool) error {
	s.mutants = nil
	replace := map[string]string{}
	pkg := ""
	for _, file := range files {
		path := filepath.Join(s.dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w := &writer{subject: s, file: file, source: source, set: token.NewFileSet(), without: without}
		tree, err := parser.ParseFile(w.set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg = tree.Name.Name
		w.walk(tree)
		replace[path] = filepath.Join(s.work, file)
		if err := os.WriteFile(replace[path], fmt.Appendf(nil, "//line %s:1\n%s", path, w.text()), 0o600); err != nil {
			return err
		}
	}
	choose := filepath.Join(s.work, "choose.go")
	replace[filepath.Join(s.dir, "zz_choose.go")] = choose
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	return errors.Join(err, os.WriteFile(choose, []byte("package "+pkg+"\n"+chooser), 0o600), os.WriteFile(filepath.Join(s.work, "overlay.json"), overlay, 0o600))
}

// run runs tests with an additional environment entry, and returns their output.
func (s *subject) run(limit time.Duration, tests []string, entry string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.tests, "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.failfast", "-test.timeout", limit.String())
	cmd.Dir, cmd.Env = s.dir, append(append(os.Environ(), entry), rapid...)
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended && !errors.Is(err, exec.ErrWaitDelay) {
		log.Fatalf("the tests of %s were not run: %v", s.name, err) // else each mutant would die of it
	}
	return string(said), err
}

// cover finds which tests execute which mutants.
func (s *subject) cover() error {
	cmd := exec.Command(s.tests, "-test.list", "^(Test|Fuzz|Example)")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	met := filepath.Join(s.work, "met")
	for _, test := range strings.Fields(string(out)) {
		if test == slow[s.name] {
			continue
		}
		began := time.Now()
		_, err := s.run(5*time.Minute, []string{test}, "MUTANTS_MET="+met)
		if err != nil {
			fmt.Printf("left out, since it fails in this build without a mutant: %s\n", test)
		}
		s.took[test] = time.Since(began)
		text, readErr := os.ReadFile(met)
		if err == nil && readErr == nil {
			for _, id := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(id); err == nil {
					s.mutants[n-1].tests = append(s.mutants[n-1].tests, test)
				}
			}
		}
		_ = os.Remove(met) // absent if no mutant was executed
	}
	return nil
}

// failures matches the tests that failed, or were running at the timeout.
var failures = regexp.MustCompile(`(?m)^(?:--- FAIL: |\t\t?)((?:Test|Fuzz|Example)\w*)\S* \(`)

// dies reports whether a test that executes a mutant fails, and fails again alone: so a test that fails
// because the machine is busy does not kill it. Fast tests, and those that killed other mutants of the
// file, run first.
func (s *subject) dies(m *mutant) bool {
	slices.SortFunc(m.tests, func(a, b string) int { return cmp.Compare(s.cost(m, a), s.cost(m, b)) })
	few := min(len(m.tests), 6)
	for _, tests := range [][]string{m.tests[:few], m.tests[few:]} {
		for len(tests) > 0 {
			failed := s.fails(m, tests)
			if len(failed) == 0 {
				break
			}
			for _, test := range failed {
				if len(s.fails(m, []string{test})) > 0 {
					s.kill(m, test)
					return true
				}
			}
			fmt.Printf("failed once, not twice, line %d of %s: %s\n", m.line, m.file, failed)
			tests = slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return slices.Contains(failed, test) })
		}
	}
	return false
}

// fails runs tests with a mutant and returns those that failed, all if unknown.
func (s *subject) fails(m *mutant, tests []string) (failed []string) {
	limit := 10 * time.Second
	for _, test := range tests {
		limit += 5 * s.took[test]
	}
	said, err := s.run(limit, tests, fmt.Sprint("MUTANT=", m.id))
	if err == nil {
		return nil
	}
	for _, match := range failures.FindAllStringSubmatch(said, -1) {
		if slices.Contains(tests, match[1]) && !slices.Contains(failed, match[1]) {
			failed = append(failed, match[1])
		}
	}
	if len(failed) == 0 {
		return tests
	}
	return failed
}

func (s *subject) cost(m *mutant, test string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took[test] / time.Duration(1+s.kills[m.file+test])
}

func (s *subject) kill(m *mutant, test string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills[m.file+test]++
}
