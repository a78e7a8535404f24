package secrets

import (
	"strings"
	"testing"
)

// Secrets are found in the forms that servers document. Each secret contains HIDDEN: Hide leaves
// no HIDDEN, and every SHOWN.
func TestFind(t *testing.T) {
	for _, c := range []struct{ within, key, text string }{
		{"args", "--token", "HIDDEN-word"},
		{"args", "-H", "X-Shown: HIDDEN-word"},
		{"args", "--header", "Authorization: Basic HIDDEN-word"},
		{"args", "--headers", `{"X-SHOWN-Token": "HIDDEN-word"}`},
		{"args", "env", "SHOWN_TOKEN=HIDDEN-word"},
		{"args", "", "--env=SHOWN_TOKEN=HIDDEN-word"},
		{"args", "", "-eSHOWN_TOKEN=HIDDEN-word"},
		{"args", "", "--SHOWN-token=HIDDEN word"},
		{"args", "", "SHOWN_KEY=HIDDEN-word"},
		{"args", "", "X-Api-Key:HIDDEN-word"},
		{"args", "", "X-SHOWN-Api-Key: HIDDEN-word"},
		{"args", "", "https://HIDDEN1ZmYxNzA5YjAtNjQ0pA@SHOWN.test/"},
		{"args", "", "mongodb+srv://SHOWN:HIDDEN:@word@SHOWN.test/?retryWrites=true"},
		{"args", "", "--dsn=HIDDEN-word"},
		{"args", "", "ghp_HIDDENword"},
		{"args", "", "--SHOWN=ghp_HIDDENword"},
		{"args", "", "HIDDEN1ZmYxNzA5YjAtNjQ0pA"},
		{"args", "-c", "SHOWN --api-key HIDDEN-word --SHOWN; PASSWORD='HIDDEN word' SHOWN"},
		{"args", "-c", `curl -H "Authorization: Bearer HIDDEN-word" https://SHOWN.test`},
		{"args", "--config", `{\"apiKey\": \"HIDDEN-word\", \"SHOWN\": \"SHOWN\"}`},
		{"", "url", "https://SHOWN.test/mcp?tools=SHOWN&code=HIDDEN-word&limit=5#access_token=HIDDEN-word"},
		{"", "url", "https://SHOWN.test/v2/6f9619ff-8b86-d011-b42d-00cf4fc964ff-HIDDEN1a2B3c/SHOWN-server-2025"},
		{"headers", "X-Any", "HIDDEN-word"},
		{"headers", "Authorization", "Bearer HIDDEN-word"},
		{"headers", "Cookie", "a=HIDDEN-word; b=HIDDEN-word"},
		{"env", "MY_PAT", "HIDDEN-word"},
		{"env", "SHOWN", `{"Authorization": "Bearer HIDDEN-word", "Version": "SHOWN"}`},
		{"env", "SHOWN", "Endpoint=SHOWN;SharedAccessKey=HIDDEN-word"},
		{"args", "-k", "HIDDEN1word"},
		{"args", "-t", "HIDDEN1word"},
		{"args", "-p", "HIDDEN1word"},
		{"args", "-u", "SHOWN:HIDDEN-word"},
		{"args", "env", "STRIPE=HIDDEN1word"},
		{"args", "", "curl -u SHOWN:HIDDEN-word https://SHOWN.test"},
		{"args", "-c", "curl --user 'SHOWN:HIDDEN-word' https://SHOWN.test"},
		{"args", "-c", "export GH_PAT='HIDDEN word' SHOWN=SHOWN; SHOWN"},
		{"args", "", "DB_PASS=HIDDEN-word"},
		{"args", "", "https://hooks.slack.com/services/T01SHOWN/B01SHOWN/HIDDENword"},
		{"", "url", "https://SHOWN.test/webhooks/SHOWN/HIDDENword?wait=true"},
		{"env", "MY_CRED", "HIDDEN-word"},
		{"env", "CONNSTR", "HIDDEN-word"},
		{"env", "SALT", "HIDDEN-word"},
		{"env", "LICENSE", "HIDDEN1word"},
		{"env", "LICENSE", "HIDDEN-word12-ABCDEF-012345"},
		{"env", "SESSION", "HIDDEN1word"},
		{"env", "JIRA_TOKEN_FILE", "HIDDEN-word"},
		{"env", "OTP_SEED", "HIDDEN-word"},
		{"env", "ENCRYPTION", "HIDDEN1word"},
		{"env", "SUPABASE_ANON", "HIDDEN1word"},
		{"env", "STRIPE", "HIDDEN1word"},
		{"env", "DISCORD_BOT", "HIDDEN1word"},
		{"env", "PEM", "-----BEGIN PRIVATE KEY-----\nHIDDEN\n-----END PRIVATE KEY-----"},
	} {
		found := Find(c.within, c.key, c.text)
		left := Hide(c.text, found, "***")
		if len(found) == 0 || strings.Contains(left, "HIDDEN") || strings.Contains(left, "word") || strings.Count(left, "SHOWN") != strings.Count(c.text, "SHOWN") {
			t.Errorf("%s %s %q: shown as %q", c.within, c.key, c.text, left)
		}
	}
}

// Texts that only resemble secrets and references to variables are not found.
func TestFindNoSecrets(t *testing.T) {
	for _, c := range []struct{ within, key, text string }{
		{"args", "", "@modelcontextprotocol/server-filesystem@2026.8.31"},
		{"args", "", "ghcr.io/github/github-mcp-server:v1.2.3"},
		{"args", "", "node@sha256:9b2c1e1b3f5a7d9e9b2c1e1b3f5a7d9e9b2c1e1b3f5a7d9e9b2c1e1b3f5a7d9e"},
		{"args", "", "--max-tokens=8000"},
		{"args", "--token-limit", "8000"},
		{"args", "--auth-mode", "interactive"},
		{"args", "--auth", "oauth2"},
		{"args", "--key-file", "/etc/ssl/private"},
		{"args", "--key", "~/.ssh/id.pem"},
		{"args", "--author", "somebody"},
		{"args", "--token", "${TOKEN}"},
		{"args", "--header", "Authorization: Bearer ${TOKEN}"},
		{"args", "--header", "Accept: text/html"},
		{"args", "env", "GITHUB_PERSONAL_ACCESS_TOKEN"},
		{"args", "env", "LOG_LEVEL=debug"},
		{"args", "-c", "API_KEY=$API_KEY npx x"},
		{"args", "", "browserTakeScreenshotAndNavigate"},
		{"args", "", "/home/me/projects/2025-keynote"},
		{"", "url", "https://docs.test/v1/mcp/servers/context-2025?tools=a,b&read_only=true&version=2"},
		{"", "url", "https://${USER}:${PASSWORD}@x.test/${PART}?key=${KEY}"},
		{"", "description", "Finds a key in the keyboard's manual. Use when asked about tokens."},
		{"args", "-p", "8080"},
		{"args", "-p", "8080:80"},
		{"args", "-p", "my-project-123456"},
		{"args", "-p", "@scope/package2go@1.2.3"},
		{"args", "-p", "./projects/site2025"},
		{"args", "-t", "stdio"},
		{"args", "-t", "node:20-alpine"},
		{"args", "-k", "-sS"},
		{"args", "-k", "https://x.test/mcp"},
		{"args", "-u", "1000:1000"},
		{"args", "-u", "node:node"},
		{"args", "-u", "somebody"},
		{"args", "-c", "docker run -u app:staff x; python3 -u server.py"},
		{"args", "-c", "PATH=/usr/bin:$PATH PATTERN=*.go SIGNAL=9 npx x"},
		{"args", "", "https://x.test/webhooks/new"},
		{"env", "LICENSE", "Apache-2.0"},
		{"env", "SESSION", "ubuntu-xorg"},
		{"env", "RANDOM_SEED", "42"},
		{"env", "ENCRYPTION", "AES-256-GCM"},
		{"env", "GITHUB_ORG", "acme2024inc"},
		{"env", "DISCORD_BOT", "my-bot"},
		{"env", "STRIPE", "enabled"},
		{"env", "JIRA_TOKEN_FILE", "/run/secrets/jira"},
		{"env", "MODEL", "claude-3-opus-20240229"},
		{"env", "PATTERN", "*.md"},
		{"env", "SIGNAL", "SIGUSR1"},
		{"headers", "Content-Type", "application/json"},
		{"env", "TOKENIZERS_PARALLELISM", "false"},
		{"env", "GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"},
		{"env", "NODE_OPTIONS", "--max-old-space-size=4096"},
	} {
		if found := Find(c.within, c.key, c.text); len(found) > 0 {
			t.Errorf("%s %s %q: shown as %q", c.within, c.key, c.text, Hide(c.text, found, "***"))
		}
	}
}

func BenchmarkFind(b *testing.B) {
	texts := []string{"npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/home/me/projects", "https://mcp.example.com/mcp", "Read and search the files of this project. Use for anything about its source."}
	for b.Loop() {
		for _, text := range texts {
			Find("args", "", text)
		}
	}
}
