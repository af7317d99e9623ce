"""Queries as agents send them, from longer or other texts: shorter, in other words, misspelt. Tables of our own."""

import re

STOP = set(
    "a an and are as at be been but by can could did do does for from had has have he help her his how i if in into is it its"
    " just let me my need of on or our please re s she should so some that the their them then there these they this to us"
    " using ve via want was we were what when where which who will with would you your".split()
)

# Each line: words that stand for each other where tools are described and asked for.
SYNONYMS = [line.split(" | ") for line in """
list | show | enumerate | give me all | what are the | display | which are the | see all
get | fetch | retrieve | look up | show | give me | tell me | pull up | obtain | read | grab
create | make | add | set up | generate | start a new | build | new | put together | open a new
delete | remove | get rid of | erase | throw away | wipe | take out | discard
update | change | edit | modify | adjust | alter | revise | fix up
search | find | look for | locate | hunt for | query | discover
send | post | deliver | shoot off | submit | pass on
run | execute | launch | start | kick off | fire up | trigger
stop | cancel | end | halt | shut down | terminate | kill | abort
convert | turn | transform | change | translate
calculate | compute | work out | figure out | determine
check | verify | test | see if | make sure | validate | inspect
download | save locally | fetch a copy of | get
upload | put up | push | send up
copy | duplicate | clone | make a copy of
move | relocate | shift | put elsewhere | transfer
rename | give another name to | call differently
merge | combine | join | put together | unify
compare | tell apart | contrast | see the difference between
schedule | plan | set a time for | book | arrange
analyze | analyse | examine | study | look into | break down
summarize | sum up | give the gist of | condense | shorten
monitor | watch | keep an eye on | track | follow
assign | give to | hand over to | put in charge
close | finish | mark as done | resolve | shut
subscribe | sign up | follow | get notified about
authenticate | log in | sign in
configure | set up | adjust settings of | tweak
install | set up | put on my machine | add
deploy | roll out | publish | put live | ship
image | picture | photo | pic
images | pictures | photos
directory | folder
file | document
email | mail | message
weather | weather conditions | climate outside
forecast | outlook | prediction | what is coming
price | cost | how much is | rate | quote
location | place | where it is | position | spot
user | person | account | member
users | people | members | accounts
repository | repo | codebase | code project
issue | ticket | bug report | problem
issues | tickets | bugs | open problems
error | failure | something wrong | fault
message | note | text | chat
database | data store | db
table | dataset | sheet
record | entry | row | item
records | entries | rows | items
video | clip | film | footage
music | songs | tunes | tracks
restaurant | place to eat | eatery | diner
hotel | place to stay | accommodation | lodging
flight | plane trip | air travel | plane ticket
event | appointment | meeting | happening
calendar | agenda | schedule | diary
task | to-do | job | thing to do
reminder | nudge | alert | notification
news | headlines | latest stories | current events
article | story | piece | post
stock | share | equity | shares
currency | money | foreign money
cryptocurrency | crypto | coin | token
balance | how much is left | funds | remaining amount
transaction | payment | transfer
customer | client | buyer | shopper
order | purchase | sale
product | item | goods | article
invoice | bill
recipe | dish | something to cook | meal idea
book | novel | reading | title
movie | film | motion picture
translation | version in another language
language | tongue
temperature | how warm | how hot or cold | heat
distance | how far
route | way to get there | directions | path
team | group | squad
game | match | fixture
score | result | points
player | athlete
job | position | opening | work
salary | pay | wage | income
company | firm | business | organization
website | site | web page | page
link | url | web address
domain | web address | site name
server | machine | host | box
container | docker instance | running box
log | record of what happened | trace
logs | records | what happened
metrics | numbers | statistics | stats | figures
status | state | condition | how it is going
details | information | info | particulars | facts
version | release | edition
branch | line of development
comment | remark | feedback | reply
label | tag | marker
password | secret | credential
permission | access | right
network | internet connection | connectivity
address | street | where someone lives
phone | telephone | number to call
random | arbitrary | any | surprise me with a
latest | newest | most recent | current | up to date
available | free | on offer | open
history | past | log of earlier | previous
specific | certain | particular | given
multiple | several | many | a bunch of
all | every | each of the
""".strip().splitlines()]

OPENINGS = [
    "i want to {}", "can you {}", "how do i {}", "i need to {}", "could you {} for me", "please {}", "help me {}",
    "is there a way to {}", "i'd like to {}", "{} for me", "{} please", "what can {}", "my boss asked me to {}",
    "let's {}", "need something to {}", "time to {}", "a tool to {}", "{} now",
]
_word = re.compile(r"[A-Za-z0-9][\w'-]*")
_sentence = re.compile(r"(?<=[.!?])\s+|\n+")


def _others():
    others = {}
    for group in SYNONYMS:
        for word in group:
            if " " not in word:
                others.setdefault(word, []).extend(other for other in group if other != word)
    return others


OTHERS = _others()


def content(text):
    return [word for word in _word.findall(text) if word.lower() not in STOP]


def sentences(text):
    return [part.strip() for part in _sentence.split(text) if len(part.strip()) > 3]


def best_sentence(query, document):
    """The sentence that has most of the document's words; for queries with several needs."""
    wanted = {word.lower()[:5] for word in content(document)}
    parts = sentences(query) or [query]
    return max(parts, key=lambda part: sum(word.lower()[:5] in wanted for word in content(part)))


def other_words(text, random, share):
    """Each word that has synonyms gives way to one with this probability."""
    def replace(match):
        others = OTHERS.get(match.group(0).lower())
        return random.choice(others) if others and random.random() < share else match.group(0)

    return _word.sub(replace, text)


def keywords(text, random, most=6):
    """A few of the telling words, in their order."""
    words = content(text)
    count = min(len(words), random.randint(2, most))
    return " ".join(words[at] for at in sorted(random.sample(range(len(words)), count))) if words else text


def misspell(text, random, mistakes=2):
    """Swaps, drops, doubles or replaces letters of the longer words."""
    words = text.split(" ")
    places = [at for at, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    for at in random.sample(places, min(len(places), random.randint(1, mistakes))):
        word, place = words[at], random.randint(0, len(words[at]) - 2)
        kind = random.randint(0, 3)
        if kind == 0:
            words[at] = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        elif kind == 1:
            words[at] = word[: place + 1] + word[place + 2 :]
        elif kind == 2:
            words[at] = word[: place + 1] + word[place:]
        else:
            words[at] = word[: place + 1] + random.choice("abcdefghijklmnopqrstuvwxyz") + word[place + 2 :]
    return " ".join(words)


def ask(text, random):
    return random.choice(OPENINGS).format(text[:1].lower() + text[1:].rstrip(".!? "))
