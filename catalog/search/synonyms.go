package search

import (
	"slices"
	"strings"
	"sync"
)

// synonyms maps a term to its synonyms. The first query makes it.
var synonyms = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(meanTheSame) {
		group := Terms(line)
		for _, w := range group {
			for _, other := range group {
				if other != w && !slices.Contains(m[w], other) {
					m[w] = append(m[w], other)
				}
			}
		}
	}
	return m
})

// meanTheSame are groups of synonyms, one a line. They are general English and common words
// of software, and come from no set of queries.
const meanTheSame = `
create make add new generate build compose
delete remove erase drop destroy clear discard
get fetch retrieve read obtain load
show view display see
list enumerate
search find lookup locate seek
update edit modify change alter revise
send post deliver submit
run execute launch start invoke trigger
stop cancel abort terminate kill halt end
resume continue
pause wait sleep
undo revert restore rollback
copy duplicate clone
move rename relocate
merge combine join
split divide
check verify validate test
compare diff difference
choose select pick
explain describe
answer reply respond response
sort order rank
watch monitor observe track
enable activate
disable deactivate
deploy release publish
download save export
upload import
convert transform
calculate compute calculation
extract parse scrape crawl
browse navigate visit
click tap press
type enter fill
scroll swipe
screenshot capture
picture image photo photograph
movie film cinema
video clip
song music track
speech voice audio
speak say
chart graph plot diagram
summary summarize overview
directory folder
file document doc
text message
chat conversation thread discussion
email mail inbox
comment remark note
website webpage site page
url link web
repository repo codebase
issue bug ticket
task todo
error failure exception fault
function method
package library module dependency
container docker
secret password credential
authenticate login
permission access
database db
query sql
row record
metric measurement statistic
alert alarm notification
log history
backup snapshot
label tag
category kind
team group
user person people member
employee staff
customer client
company organization business firm
invoice bill
price cost fee
buy purchase order
money currency
revenue income earning
stock share equity
cryptocurrency bitcoin
latest recent newest
quick fast
big large
small little
amount quantity number count
average mean
maximum highest
minimum lowest
meeting event appointment calendar
book reserve reservation
trip travel journey
flight airline plane
train railway
taxi cab
car vehicle automobile
hotel accommodation lodging
restaurant dining
recipe dish meal
route direction navigation path
location place position
address location
city town
country nation
map cartography
weather forecast climate
article paper publication
author writer
doctor physician
medicine drug medication
lawyer attorney
home house
phone telephone
`
