package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// maxBatchLine is the number of characters of a command line that cmd.exe reads.
const maxBatchLine = 8191

// IsBatch reports whether a Windows program is a batch file, such as npx.cmd.
func IsBatch(path string) bool {
	extension := strings.ToLower(filepath.Ext(strings.TrimRight(path, ". "))) // as Windows opens files
	return extension == ".bat" || extension == ".cmd"
}

// BatchLine returns the command line with which cmd.exe, at shell, runs a batch file. The shell
// parses the line before the program does, by rules other than those of package syscall, so that
// an argument could end the command and begin another (CVE-2024-24576). An argument that
// cannot be quoted safely is an error.
func BatchLine(shell, path string, args []string) (string, error) {
	// Extensions, for percent signs; no delayed expansion of exclamation marks; no AutoRun.
	path = plainPath(path)
	line := `"` + shell + `" /d /e:on /v:off /c "`
	for i, word := range append([]string{path}, args...) {
		if strings.ContainsAny(word, "\x00\r\n") {
			return "", fmt.Errorf("argument %d has a line break or a zero byte, which cannot be passed to the batch file %s", i, filepath.Base(path))
		}
		if i == 0 && strings.Contains(word, `"`) {
			return "", errors.New("the path of a batch file has a quotation mark")
		}
		if i > 0 {
			line += " "
		}
		line += batchWord(word, i == 0)
	}
	line += `"`
	if len(line) > maxBatchLine {
		return "", fmt.Errorf("the arguments of the batch file %s have more than %d characters", filepath.Base(path), maxBatchLine)
	}
	return line, nil
}

// batchWord quotes a word for the shell and for the program to which the batch file passes it.
func batchWord(word string, path bool) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`-_./:\@+`, r)
	}
	if !path && word != "" && strings.TrimLeftFunc(word, plain) == "" && !strings.HasSuffix(word, `\`) {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	backslashes := 0 // before this byte; the program halves them before a quotation mark
	for _, c := range []byte(word) {
		switch c {
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
		case '%':
			// %%cd:~,% is empty for every directory: it keeps the text between two percent signs
			// from naming a variable.
			b.WriteString(`%%cd:~,`)
		}
		if backslashes++; c != '\\' {
			backslashes = 0
		}
		b.WriteByte(c)
	}
	b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
	return b.String()
}

// BatchDir returns the working directory of a batch file as cmd.exe reads it, without the prefix
// of long paths. A share is an error: the shell would silently use the directory of Windows.
func BatchDir(dir string) (string, error) {
	dir = plainPath(dir)
	if strings.HasPrefix(dir, `\\`) || strings.HasPrefix(dir, "//") {
		return "", fmt.Errorf("a batch file cannot run in %s: cmd.exe has no shares as working directories; map it to a drive", dir)
	}
	return dir, nil
}

// plainPath returns a path of Windows without the prefix of long paths, which cmd.exe does not know.
func plainPath(path string) string {
	const long, share = `\\?\`, `\\?\UNC\`
	switch {
	case len(path) > len(share) && strings.EqualFold(path[:len(share)], share):
		return `\\` + path[len(share):]
	case len(path) > len(long)+1 && path[:len(long)] == long && path[len(long)+1] == ':':
		return path[len(long):]
	}
	return path
}
