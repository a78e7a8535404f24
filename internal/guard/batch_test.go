package guard_test

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/guard"
)

func TestBatchLine(t *testing.T) {
	const shell, script = `C:\Windows\System32\cmd.exe`, `C:\Program Files\nodejs\npx.cmd`
	const prefix = `"` + shell + `" /d /e:on /v:off /c ""` + script + `" `
	for arg, want := range map[string]string{
		`-y`:                          `-y`,
		`@scope/name@1.2.3`:           `@scope/name@1.2.3`,
		`C:\a\b`:                      `C:\a\b`,
		``:                            `""`,
		`two words`:                   `"two words"`,
		`C:\a dir\`:                   `"C:\a dir\\"`,
		`C:\a\`:                       `"C:\a\\"`,
		`&calc.exe`:                   `"&calc.exe"`,
		`a|b<c>d^e(f)`:                `"a|b<c>d^e(f)"`,
		`"&calc.exe`:                  `"""&calc.exe"`,
		`{"a":"b & c"}`:               `"{""a"":""b & c""}"`,
		`a\"b`:                        `"a\\""b"`,
		`%PATH%`:                      `"%%cd:~,%PATH%%cd:~,%"`,
		`%CMDCMDLINE:~-1%&calc.exe`:   `"%%cd:~,%CMDCMDLINE:~-1%%cd:~,%&calc.exe"`,
		`!PATH!`:                      `"!PATH!"`,
		`a=b,c;d`:                     `"a=b,c;d"`,
		`grün`:                        `"grün"`,
		"a\tb":                        "\"a\tb\"",
		"a\nb":                        "",
		"a\rcalc.exe":                 "",
		"a\x00b":                      "",
		strings.Repeat("a b", 1<<10):  `"` + strings.Repeat("a b", 1<<10) + `"`,
		strings.Repeat("a b", 10<<10): "",
	} {
		got, err := guard.BatchLine(shell, script, []string{arg})
		if want == "" {
			if err == nil {
				t.Errorf("%.40q: got %.80s, want an error", arg, got)
			}
			continue
		}
		if err != nil || got != prefix+want+`"` {
			t.Errorf("%.40q: got %s, %v\nwant %s", arg, got, err, prefix+want+`"`)
		}
	}
	if got, err := guard.BatchLine(shell, `a"b.cmd`, nil); err == nil {
		t.Errorf("got %s, want an error", got)
	}
}

func TestIsBatch(t *testing.T) {
	for path, want := range map[string]bool{
		"npx.cmd": true, "A.BAT": true, "a.cmd. .": true, "a.exe": false, "cmd": false, "a.cmd.exe": false, "": false,
	} {
		if got := guard.IsBatch(path); got != want {
			t.Errorf("%q: got %t", path, got)
		}
	}
}

func TestBatchDir(t *testing.T) {
	for dir, want := range map[string]string{
		`C:\a dir`: `C:\a dir`, `\\?\C:\a`: `C:\a`, `\\?\c:`: `c:`, `a\b`: `a\b`, `\\server\share`: "", `//server/share`: "",
		`\\?\UNC\server\share`: "", `\\?\unc\server\share\a`: "", `\\?\Volume{1}\a`: "",
	} {
		got, err := guard.BatchDir(dir)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", dir, got, err)
		}
	}
	const shell = `C:\Windows\System32\cmd.exe`
	for path, want := range map[string]string{`\\?\C:\a\run.cmd`: `C:\a\run.cmd`, `\\?\UNC\server\share\run.cmd`: `\\server\share\run.cmd`} {
		if got, err := guard.BatchLine(shell, path, nil); err != nil || !strings.HasSuffix(got, `/c ""`+want+`""`) {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
}
