package lint

import (
	"regexp"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// A rule matches an expression.
type rule struct {
	name, grade string
	expr        func() *regexp.Regexp
}

// texts are rules for descriptions, titles and other strings of definitions.
var texts = []rule{
	// Hosts that render Markdown do not show it.
	{"html-comment", High, lazyregexp.New(`(?s)<!--.*?(-->|$)`)},
	{"ignore-instructions", High, lazyregexp.New(`(?i)\b(ignore|disregard|forget|override)\s+((all|any|the|your|of)\s+)*(previous|prior|earlier|above|system|existing)\s+(\w+\s+)?(instructions?|prompts?|rules|guidelines|directions|messages)\b`)},
	{"before-other-tools", High, lazyregexp.New(`(?i)\b(before|prior\s+to|whenever|each\s+time|every\s+time)\s+(you\s+)?(us|call|invok|run)(e|ing)?\s+(any|all|every|the)\s+(other\s+)?(tools?|functions?|commands?)\b`)},
	{"changes-other-tools", High, lazyregexp.New(`(?i)\bwhen(ever)?\s+(this|the)\s+tool\s+is\s+(available|present|installed|enabled)\b`)},
	{"keep-from-user", High, lazyregexp.New(`(?i)\b(do\s+not|don['’]t|never|without|must\s+not|should\s+not)\s+(ever\s+)?(tell|inform|notify|mention|reveal|disclose|alert)(ing)?\s+((this|it|that|anything|about|to|the|any)\s+)*(user|human|person|anyone)s?\b`)},
	{"orders-in-tags", High, lazyregexp.New(`(?i)<\s*/?\s*(important|system|instructions?|hidden|admin)\s*>`)},
	{"secret-files", Low, lazyregexp.New(`(?i)\.ssh/|\.aws/credentials|\bid_(rsa|ed25519|ecdsa)\b|\.cursor/mcp\.json|\.netrc\b|/etc/(passwd|shadow)\b`)},
	{"asks-for-conversation", High, lazyregexp.New(`(?i)\b(pass|put|send|include|provide|add|append|copy|forward|summari[sz]e)\s+(\w+\s+){0,4}(conversation|chat\s+history|system\s+prompt|previous\s+messages|full\s+context)\b`)},
	{"address-with-data", High, lazyregexp.New(`(?i)!\[[^\]]*\]\(\s*https?://|https?://[^\s"'<>)]*[?&#/=](\{|\$\{|<|\[|%7b)\s*(conversation|history|data|secret|token|key|password|content|context|prompt|message)s?\b`)},
}

// members are names of members of input schemas.
var members = []rule{
	{"member-for-conversation", High, lazyregexp.New(`(?i)^(side_?notes?|conversation(_?(history|context|text|log))?|chat_?(history|log)|(full|entire)_?(conversation|context|history)|system_?prompt|previous_?messages|message_?history|(model|agent|assistant)_?(context|memory|instructions))$`)},
	{"member-for-secrets", Low, lazyregexp.New(`(?i)^(content_?(from|of)_?.*(ssh|rsa|key|secret|passw).*|(ssh|private|secret|aws)_?keys?|id_rsa|environment_?variables|env_?vars|credentials|passwords|.*(mnemonic|seed_?phrase).*)$`)},
}
