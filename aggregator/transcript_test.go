package aggregator

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
)

// A transcript shows one behaviour of the protocol as its four ends see it:
//
//	host sends          | {"id":1,"method":"tools/call","params":{…}}
//	upstream receives   | {"id":6,"method":"tools/call","params":{…}}
//	upstream sends      | {"id":6,"result":{…}}
//	host receives       | {"id":1,"result":{…}}
//
// Each file in testdata has prose on top, a setup, the upstreams' answers to
// their first requests, and the transcript. Lines that are sent are the
// script; lines that are received are checked, and written again by
//
//	go test ./aggregator -run Transcript -update
//
// If there are several hosts or upstreams, their names are before the verb ("upstream b
// sends"). Other steps are
//
//	host leaves, upstream leaves   |           its streams end
//	time passes                    | 50ms
//	person approves                | SERVER[/TOOL]  as listed
//	upstream sends +               | …         sent together with the next step
//
// Abbreviations: {"jsonrpc":"2.0", is left out. $HOST are the members of _meta
// by which a host of the stateless era introduces itself, $OWN those of
// dynmcp. $TEXT is a long text from the catalogue, $STATE1 the first requestState
// of dynmcp, $RESULT1 the first handle of a result. Every message of an upstream
// has unknown members, among them $GREASE, and every list of contents has a content
// of an unknown type, $CONTENT: see greased.
var update = flag.Bool("update", false, "write what was received into the transcripts")

func TestTranscripts(t *testing.T) {
	t.Parallel()
	if *recorded != "" && *update {
		transcribe(t, *recorded)
	}
	testTranscripts(t, "testdata/*.txtar", false, nil)
}

// Hosts of two replicas share a server.
func TestTranscriptsOfReplicas(t *testing.T) {
	testTranscripts(t, "testdata/replicas/*.txtar", true, nil)
}

// testTranscripts plays transcripts, except those to skip. If skip is nil, they can be updated.
func testTranscripts(t *testing.T, glob string, apart bool, skip []string) {
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		if slices.Contains(skip, filepath.ToSlash(file)) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			synctest.Test(t, func(t *testing.T) { got = play(t, archive, apart) })
			script := section(archive, "transcript")
			if *update && skip == nil {
				script.Data = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(script.Data), "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", strings.TrimSpace(string(archive.Comment)), diff)
			}
		})
	}
}

// elsewhereSooner lists transcripts in which dynmcp answers sooner if the server runs on
// another replica: that replica waits for the end of a subscription at a server of the
// stateless era, and this one does not know that a list is being fetched. It answers a list from
// what it knows, so that a missing tool does not make it ask the server. The server's log messages
// before it is ready stay there. Pages of views that are pinned are read by both.
var elsewhereSooner = []string{"testdata/pins_flip_before_call_block.txtar", "testdata/listen_opened.txtar", "testdata/subscriptions_new_upstream.txtar", "testdata/new_tool.txtar", "testdata/new_tool_direct.txtar", "testdata/log_before_initialized.txtar",
	"testdata/discover_wrong.txtar", "testdata/filtered.txtar", "testdata/proxy_wrong.txtar", "testdata/split.txtar", "testdata/tree.txtar",
	"testdata/stale_tool.txtar", "testdata/stale_resource.txtar",
	"testdata/pins_page_block.txtar", "testdata/pins_page_varies.txtar", "testdata/pins_page_warn.txtar"}

// onlyHere lists transcripts in which a question is answered as the only host would: a replica
// has several.
var onlyHere = []string{"testdata/bridge_refused.txtar", "testdata/question_refused.txtar", "testdata/roots_undeclared.txtar"}

// A host and a server on another replica see the same messages as if the server ran here: the
// transcripts do not change.
func TestTranscriptsOfServersElsewhere(t *testing.T) {
	t.Parallel()
	testTranscripts(t, "testdata/*.txtar", true, slices.Concat(elsewhereSooner, onlyHere))
}

func section(archive *txtar.Archive, name string) *txtar.File {
	for i, f := range archive.Files {
		if f.Name == name {
			return &archive.Files[i]
		}
	}
	return &txtar.File{}
}

// play runs a transcript and returns it with the messages that were received.
func play(t *testing.T, archive *txtar.Archive, apart bool) []byte {
	st := setStage(t, archive, apart)
	defer st.close()
	var out bytes.Buffer
	st.received(&out)
	for step := range strings.Lines(string(section(archive, "transcript").Data)) {
		who, what, ok := strings.Cut(strings.TrimSuffix(step, "\n"), "|")
		who, what = strings.TrimSpace(who), strings.TrimSpace(what)
		words := strings.Fields(who)
		switch {
		case strings.TrimSpace(step) == "" || strings.HasPrefix(step, "#"):
			out.WriteString(step)
			continue
		case !ok || len(words) < 2:
			t.Fatalf("a step is WHO VERB | WHAT, got %q", step)
		case words[len(words)-1] == "receives":
			continue // written again
		}
		out.WriteString(line(who, what))
		if !st.act(words, what) {
			continue
		}
		quiesce()
		st.received(&out)
	}
	return out.Bytes()
}

// settling is longer than the delay before hosts are notified, and far shorter than every
// timeout. It is the time of a synctest bubble.
const settling = 4 * notify.AnnounceDelay

func line(who, what string) string {
	return strings.TrimRight(fmt.Sprintf("%-19s | %s", who, what), " ") + "\n"
}

// act does one step. It returns false if the next step belongs to it.
func (st *stage) act(words []string, what string) bool {
	verb := words[len(words)-1]
	together := verb == "+"
	if together {
		words = words[:len(words)-1]
		verb = words[len(words)-1]
	}
	who := strings.Join(words[:len(words)-1], " ")
	switch {
	case who == "time" && verb == "passes":
		d, err := time.ParseDuration(what)
		if err != nil {
			st.t.Fatal(err)
		}
		time.Sleep(d)
	case who == "person" && verb == "approves":
		st.approveNow(what)
	case verb == "leaves":
		st.actor(who).leave()
	case verb == "sends":
		a := st.actor(who)
		for i, state := range slices.Backward(st.states) {
			what = strings.ReplaceAll(what, fmt.Sprintf("$STATE%d", i+1), state)
		}
		for i, handle := range slices.Backward(st.results) {
			what = strings.ReplaceAll(what, fmt.Sprintf("$RESULT%d", i+1), handle)
		}
		a.held = append(a.held, a.message(what)+"\n"...)
		if !together {
			a.flush()
		}
	default:
		st.t.Fatalf("nobody %s", verb)
	}
	return !together
}

// received writes the messages since the last call: first those to upstreams, then those
// to hosts.
func (st *stage) received(out *bytes.Buffer) {
	for _, a := range append(st.upstreams[:len(st.upstreams):len(st.upstreams)], st.hosts...) {
		for _, text := range a.take() {
			out.WriteString(line(a.name+" receives", st.short(text)))
		}
	}
}

// ourTexts matches texts of the catalogue, which has its own tests.
var ourTexts = regexp.MustCompile(`("instructions":|"description":|"text":)"(?:The tools of|Shows the tools)(?:[^"\\]|\\.)*"`)

// ourHandles matches the handles of results that were kept.
var ourHandles = regexp.MustCompile(`(result(?:\\": | )\\")([a-z2-7]{12})`)

var ourStates = regexp.MustCompile(`dynmcp(?:1|-permit)\.[\w-]+`)

// short abbreviates a message that was received.
func (st *stage) short(text string) string {
	text = strings.Replace(text, `{"jsonrpc":"2.0",`, `{`, 1)
	for _, h := range st.hosts {
		if h.introduction != "" {
			text = strings.ReplaceAll(text, h.introduction, "$HOST")
		}
	}
	text = ourStates.ReplaceAllStringFunc(text, func(state string) string {
		if !slices.Contains(st.states, state) {
			st.states = append(st.states, state)
		}
		return fmt.Sprintf("$STATE%d", slices.Index(st.states, state)+1)
	})
	text = ourHandles.ReplaceAllStringFunc(text, func(found string) string {
		m := ourHandles.FindStringSubmatch(found)
		if !slices.Contains(st.results, m[2]) {
			st.results = append(st.results, m[2])
		}
		return fmt.Sprintf("%s$RESULT%d", m[1], slices.Index(st.results, m[2])+1)
	})
	if !st.texts {
		text = ourTexts.ReplaceAllString(text, `$1$$TEXT`)
	}
	return strings.NewReplacer(own, "$OWN", grease, "$GREASE", content, "$CONTENT").Replace(text)
}

// message expands an abbreviated line.
func (a *actor) message(text string) string {
	text = strings.NewReplacer("$HOST", a.introduction, "$OWN", own).Replace(text)
	if rest, ok := strings.CutPrefix(text, "{"); ok && !strings.Contains(text, `"jsonrpc"`) {
		text = `{"jsonrpc":"2.0",` + rest
	}
	if a.upstream {
		text = greased(text)
	}
	return text
}
