package script

import (
	"encoding/json"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// maxBlobs is how many bytes of images and blobs are held for a script.
const maxBlobs = 64 << 20

// blobs are the images and blobs for which a script got handles, as content blocks.
type blobs struct {
	blocks []json.RawMessage // by id from 1; nil if it was returned
	size   int
}

// take stores the data of a result's images and blobs, and returns the result without it.
func (b *blobs) take(kind string, result json.RawMessage) (json.RawMessage, []engine.Blob, *Failure) {
	list := "content"
	switch kind {
	case engine.Search, engine.Describe:
		list = ""
	case engine.Resource:
		list = "contents"
	}
	var taken []engine.Blob
	var edits []wire.Edit
	index := 0
	for block := range wire.Elements(wire.Get(result, list)) {
		data, blob := find(block)
		if data != nil {
			if kind == engine.Resource {
				block = fmt.Appendf(nil, `{"type":"resource","resource":%s}`, block)
			}
			b.size += len(block)
			b.blocks = append(b.blocks, block)
			blob.Index, blob.ID = index, len(b.blocks)
			taken = append(taken, blob)
			edits = append(edits, wire.Edit{Span: wire.Locate(result, data), With: []byte("null")})
		}
		index++
	}
	if b.size > maxBlobs {
		return nil, nil, &Failure{Message: fmt.Sprintf("the images and blobs of the script take over %d MB", maxBlobs>>20), Outcome: engine.Ran}
	}
	if len(edits) > 0 {
		result = wire.Replace(result, edits...)
	}
	if len(result) > MaxResult {
		return nil, nil, &Failure{Message: fmt.Sprintf("the result has %d bytes, a script reads at most %d", len(result), MaxResult), Outcome: engine.Ran}
	}
	return result, taken, nil
}

// find returns the data of a block of content, or of a resource's content, in base64; nil if there is
// none.
func find(block []byte) ([]byte, engine.Blob) {
	kind, _ := wire.Text(wire.Get(block, "type"))
	data, mime := wire.Get(block, "data"), wire.Get(block, "mimeType")
	switch {
	case kind == "image" || kind == "audio":
	case kind == "resource":
		data, mime = wire.Get(block, "resource", "blob"), wire.Get(block, "resource", "mimeType")
	case kind == "":
		kind, data = "resource", wire.Get(block, "blob")
	default:
		return nil, engine.Blob{}
	}
	if len(data) == 0 || data[0] != '"' {
		return nil, engine.Blob{}
	}
	name, _ := wire.Text(mime)
	return data, engine.Blob{Type: kind, MIME: name, Size: (len(data) - 2) * 3 / 4}
}

// give returns a block that a script has returned, nil if there is none with that id or it was
// already returned.
func (b *blobs) give(id int) json.RawMessage {
	if id < 1 || id > len(b.blocks) {
		return nil
	}
	block := b.blocks[id-1]
	b.blocks[id-1] = nil
	return block
}
