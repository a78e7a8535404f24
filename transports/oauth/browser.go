package oauth

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"

	procguard "github.com/dynmcp/dynmcp/internal/guard"
)

// checkPage returns the address of a login page for a browser, re-encoded and with the name of the
// resource, and its state. An address that a server chose is
// passed to a program of the user's, so no character of it may have a special meaning there
// (CVE-2025-6514).
func checkPage(g *guard, address, resource string) (page, state string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errors.New("the address of its login page cannot be read")
	}
	if u.Opaque != "" {
		return "", "", &BlockedAddressError{u.Scheme + ":", "it is not https"}
	}
	if err := g.check(u); err != nil {
		return "", "", err
	}
	host := u.Hostname()
	if strings.ContainsFunc(host, func(r rune) bool { return !strings.ContainsRune(hostCharacters, r) }) {
		return "", "", &BlockedAddressError{u.Scheme + "://…", "its host has characters that no host has"}
	}
	query := u.Query()
	query.Set("resource", resource)
	u.RawQuery, u.Fragment, u.RawFragment = query.Encode(), "", ""
	return unsafeInShells.Replace(u.String()), query.Get("state"), nil
}

// unsafeInShells escapes characters that are valid in a path, in case that an opener is a
// script without proper quoting.
var unsafeInShells = strings.NewReplacer("'", "%27", "(", "%28", ")", "%29", "$", "%24", "!", "%21", "*", "%2A", ";", "%3B")

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:"

// OpenBrowser opens a page for the user. No shell is involved, and the address, which begins
// with http, cannot be an option of a program.
func OpenBrowser(address string) error {
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return errors.New("not a web address")
	}
	argv := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", address}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no display")
		}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return errors.New("no program that opens a browser was found")
	}
	cmd := exec.Command(path, argv[1:]...)
	procguard.Outlive(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // some openers stay as long as the browser
	return nil
}
