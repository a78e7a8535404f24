package farside

import (
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ line, args, name, end string }{
		{"docker run -i --rm mcp/fetch", "run --cidfile=/run/x/dynmcp-1 -i --rm mcp/fetch", "/run/x/dynmcp-1", "docker kill {}"},
		{"/usr/bin/podman run -i mcp/fetch --name a", "run --cidfile=/run/x/dynmcp-1 -i mcp/fetch --name a", "/run/x/dynmcp-1", "/usr/bin/podman kill {}"},
		{"docker -H tcp://h:1 --context=a run -i x", "-H tcp://h:1 --context=a run --cidfile=/run/x/dynmcp-1 -i x", "/run/x/dynmcp-1", "docker -H tcp://h:1 --context=a kill {}"},
		{"docker container run -i x run", "container run --cidfile=/run/x/dynmcp-1 -i x run", "/run/x/dynmcp-1", "docker kill {}"},
		{"docker run -e A --cidfile /c -i x", "run -e A --cidfile /c -i x", "/c", "docker kill {}"},
		{"docker run -e A --cidfile=/c -i x", "run -e A --cidfile=/c -i x", "/c", "docker kill {}"},
		{"docker run -i x --cidfile=/c", "run --cidfile=/run/x/dynmcp-1 -i x --cidfile=/c", "/run/x/dynmcp-1", "docker kill {}"},
		{"sudo -n docker run x", "-n docker run --cidfile=/run/x/dynmcp-1 x", "/run/x/dynmcp-1", "sudo -n docker kill {}"},
		{"env A=b docker run x", "A=b docker run --cidfile=/run/x/dynmcp-1 x", "/run/x/dynmcp-1", "env A=b docker kill {}"},
		{"/snap/bin/docker run -i x", "run --name=dynmcp-1 -i x", "dynmcp-1", "/snap/bin/docker kill {}"},
		{"/snap/bin/docker run --name mine -i x", "run --name mine -i x", "mine", "/snap/bin/docker kill {}"},
		{"docker compose -f c.yaml run --rm -T mcp", "compose -f c.yaml run --name=dynmcp-1 --rm -T mcp", "dynmcp-1", "docker kill {}"},
		{"docker -c a compose run -T mcp --name b", "-c a compose run --name=dynmcp-1 -T mcp --name b", "dynmcp-1", "docker -c a kill {}"},
		{"systemd-run --user --pipe mcp-files /a", "--unit=dynmcp-1 --collect --user --pipe mcp-files /a", "dynmcp-1", "systemctl --user kill --signal=SIGKILL {}"},
		{"systemd-run -P -u mine mcp-files", "-P -u mine mcp-files", "mine", "systemctl kill --signal=SIGKILL {}"},
		{line: "systemd-run --user --scope mcp-files"},
		{line: "docker exec -i c mcp"},
		{line: "docker mcp gateway run"},
		{line: "docker --version"},
		{line: "docker"},
		{line: "docker -H"},
		{line: "docker compose"},
		{line: "docker container"},
		{line: "sudo"},
		{line: "ssh host docker run x"},
		{line: "npx -y docker run"},
	} {
		words := strings.Fields(c.line)
		given := slices.Clone(words[1:])
		side := Of(words[0], given, "/run/x", "dynmcp-1")
		if !slices.Equal(given, words[1:]) {
			t.Errorf("%s: the arguments were changed: %q", c.line, given)
		}
		if side == nil {
			if c.end != "" {
				t.Errorf("%s: it has no far side", c.line)
			}
			continue
		}
		if got := strings.Join(side.Args, " "); got != c.args || side.File+side.Name != c.name || strings.Join(side.End, " ") != c.end {
			t.Errorf("%s:\ngot  %s, %s, %s\nwant %s, %s, %s", c.line, got, side.File+side.Name, side.End, c.args, c.name, c.end)
		}
	}
}

// No command line makes it panic, and without what it adds a line is the one that was given.
func FuzzOf(f *testing.F) {
	for _, line := range []string{"docker run", "docker -H compose run x", "sudo -n env docker container run", "systemd-run -u", "docker compose -f run"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		if len(words) == 0 {
			return
		}
		side := Of(words[0], words[1:], "/run/x", "dynmcp-1")
		if side == nil {
			return
		}
		left := slices.DeleteFunc(slices.Clone(side.Args), func(word string) bool {
			return word == "--cidfile=/run/x/dynmcp-1" || word == "--unit=dynmcp-1" || word == "--name=dynmcp-1" || word == "--collect"
		})
		given := slices.DeleteFunc(slices.Clone(words[1:]), func(word string) bool { return word == "--collect" })
		if !slices.Equal(left, given) && !strings.Contains(line, "dynmcp-1") && !strings.Contains(line, "/run/x") {
			t.Errorf("%q became %q", given, side.Args)
		}
	})
}

func TestLacks(t *testing.T) {
	for line, want := range map[string]string{
		"docker run -i --rm --init x":       "",
		"docker run -it --rm --init=true x": "",
		"docker run --rm=false x":           "-i --rm --init",
		"podman run --interactive x":        "--rm --init",
		"docker compose run mcp":            "--rm",
		"docker exec -i c mcp":              "",
		"systemd-run --pipe mcp":            "",
		"npx -y x":                          "",
	} {
		words := strings.Fields(line)
		var got []string
		for _, l := range Lacks(words[0], words[1:]) {
			got = append(got, l.Option)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestByStdin(t *testing.T) {
	for line, want := range map[string]string{
		"ssh host mcp":                          "ssh",
		"ssh -p 22 -i key -o A=b host mcp -n":   "ssh",
		"ssh -t host mcp":                       "ssh",
		"ssh -tt host mcp":                      "ssh !-t",
		"ssh -t -p 22 -t host mcp":              "ssh !-t",
		"ssh -l tt host mcp":                    "ssh",
		"ssh -nT host mcp":                      "ssh !-n",
		"ssh -V":                                "",
		"env A=b /usr/bin/ssh host mcp":         "ssh",
		"kubectl exec -i pod -- mcp":            "kubectl exec",
		"kubectl exec -it pod -- mcp":           "kubectl exec",
		"kubectl -n a exec pod -c b -i -- mcp":  "kubectl exec",
		"kubectl exec --stdin=true pod -- mcp":  "kubectl exec",
		"kubectl exec --stdin=false pod -- mcp": "kubectl exec -i",
		"kubectl exec pod -- mcp -i":            "kubectl exec -i",
		"kubectl exec -c i pod -- mcp":          "kubectl exec -i",
		"kubectl port-forward pod 1":            "",
		"docker exec -i c mcp -t":               "docker exec",
		"docker exec -e A=b -it c mcp":          "docker exec !-t",
		"docker -H h exec c mcp -i":             "docker exec -i",
		"docker container exec --interactive c": "docker exec",
		"docker exec -id c mcp":                 "docker exec !-d",
		"docker exec -e -t -i c mcp":            "docker exec",
		"docker exec -iu root c mcp":            "docker exec",
		"docker run -i c":                       "",
		"sudo podman exec -i -t c mcp":          "podman exec !-t",
		"wsl -d Debian mcp":                     "wsl",
		"wsl.exe -- mcp":                        "wsl",
		"kubectl":                               "",
		"docker exec":                           "docker exec -i",
		"npx -y ssh":                            "",
	} {
		words := strings.Fields(line)
		got := ""
		if far := ByStdin(words[0], words[1:]); far != nil {
			got = strings.TrimSuffix(far.Client+" "+far.Missing, " ")
			for _, h := range far.Hurts {
				got += " !" + h.Option
			}
			if far.Where == "" {
				t.Errorf("%s: it runs nowhere", line)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
		if Of(words[0], words[1:], "/run/x", "dynmcp-1") != nil && want != "" {
			t.Errorf("%s: it is in both tables", line)
		}
	}
}
