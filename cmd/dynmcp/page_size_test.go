//go:build !core

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/ui"
	"github.com/dynmcp/dynmcp/schema"
)

// The page is small enough to be sent whole, as it is: that of a run, and that of a gateway, which has the view of
// messages, too.
func TestSizeOfThePage(t *testing.T) {
	for live, most := range map[bool]int{false: 61 << 10, true: 67 << 10} {
		w := httptest.NewRecorder()
		ui.Module.Page(schema.UIChange, live, module.Tabs(modules)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/debug", http.NoBody))
		if n := w.Body.Len(); w.Code != http.StatusOK || n > most {
			t.Errorf("live %t: %d, %d bytes, want at most %d", live, w.Code, n, most)
		} else {
			t.Logf("live %t: %d bytes", live, n)
		}
	}
}
