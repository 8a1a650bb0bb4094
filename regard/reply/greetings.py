"""Greetings of letters: `Hi Ann,`, `Sehr geehrte Frau Lee,`, `Jeff/Brenda:`."""

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import groupby

NAME = r"[A-ZÀ-Þ][\w.'’&/-]*"
_PERSON = r"[A-ZÀ-Þ][\w.'’-]*"
"""A name without the marks that separate names, so that a line can be read in one way only."""
_OTHER = (
    r"(?!(?!Family|Sally|Kelly|Molly|Polly|Holly|Billy|Emily|Beverly|Kimberly|Shelly)\w+ly\b|"
    rf"(?:Congrat|Thank)\w*|(?:Please|Pls|Plz|Kindly|Attached|Enclosed|Happy|Just|I)\b){_PERSON}"
)
"""One of several names, and not the first word of a sentence."""
_TITLES = r"(?:mr|mrs|ms|dr|prof|herrn?|frau|monsieur|madame|señora?|signora?)\.?"
_GREETING_WORDS = (
    r"hi|hello|hey|howdy|hiya|dear|greetings|good morning|good afternoon|good evening|morning|to all|aloha|"
    r"hallo|liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen|abend)|moin|servus|"
    r"bonjour|bonsoir|salut|cher|chère|chers|chères|coucou|"
    r"hola|buenos d[ií]as|buenas (?:tardes|noches)|querid[oa]s?|estimad[oa]s?|"
    r"ciao|salve|buongiorno|buonasera|car[oaie]|gentile|egregi[oa]?"
)
_GREETING_WORDS = _GREETING_WORDS.replace(" ", r"\s+")
_ALL = (
    r"(?:all|again|everyone|everybody|team|folks|guys|gang|there|both|y'all|you all|alle|zusammen|tous|toutes|todos|"
    r"todas|tutti)"
)
_PEOPLE = (
    r"(?:all|everyone|everybody|team|group|folks|guys|gals|girls|boys|gang|friends|colleagues|gentlemen|ladies|members|"
    r"managers|participants|employees|partners|customers|traders|staff|family|classmates|neighbors|neighbours|alumni|"
    r"clients|subscribers|users|shippers|students|volunteers|supporters|shareholders|investors)"
)
"""Nouns for those to whom a letter to several people is addressed."""
_NOT_NAMES = (
    r"when|where|what|why|how|who|which|recently|well|fyi|today|tomorrow|yesterday|last|next|this|that|these|those|there|"
    r"here|also|note|please|subject|re|per(?![,:])|however|first|second|third|finally|attached|attachment|attention|as|in|on|at|"
    r"ok|okay|yes|no|yeah|sure|sorry|thanks|thank|unfortunately|currently|now|then|so|but|and|or|if|for|from|to|date|"
    r"time|place|location|part|text|message|chapter|section|reminder|update|question|answer|summary|agenda|important|urgent|confidential|warning|notice|"
    r"just|again|anyway|anyways|additionally|meanwhile|otherwise|instead|basically|actually|weekly|daily|monthly|"
    r"quarterly|obviously|hopefully|congratulations|congrats|happy|merry|btw|ps|memo|memorandum|monday|tuesday|wednesday|"
    r"thursday|friday|saturday|sunday|january|february|march|june|july|august|september|october|november|december|"
    r"earlier|later|usa|news|after|before|since|while|although|because|once|until|with|without|by|under|it|i|we|you|"
    r"they|he|she|my|our|your|their|his|her|the|a|an|all of|great|good|nice|wow|oh|ah|hmm|perhaps|maybe|still|too|"
    r"california|texas|florida|oregon|houston|portland|london|canada|mexico|enron|"
    r"\w+(?:tion|sion|ment|ness|ity|ings?|ogy|ics|gram|ship|ism|ture|ers)|(?!clar|terr|lawr|prud|const|flor|vance|lance|torr)\w+[ae]nce|"
    r"(?!sally|kelly|molly|polly|holly|lilly|billy|willy|emily|beverly|kimberly|carly|shelly|reilly|o.reilly)\w+ly"
)
"""Words that begin a first sentence, or a label, and may be followed by a comma or a colon."""
_STARTERS = (
    r"thanks|thank|can|could|would|will|please|i|i'm|i've|i'll|we|do|did|are|is|have|has|here|just|per|as|attached|what|"
    r"when|how|if|in|to|for|fyi|let|sorry|good|great|hope|see|there|this|the|my|you|it|not|any|where|take|make|send|give|"
    r"call|look|go|get|check|need|want|don't|didn't|yes|no|ok|sure|that|these|why|who|should|shall|may|am|was|were|your|"
    r"our|at|on|after|before|enclosed|below|also|keep|pls|got|a|an|how's|what's|it's|that's|we're|we've|you're|let's|tell|"
    r"he|she|they|both|some|one|two|yesterday|today|another|nothing|everything|i'd|again|sounds|looks|glad|welcome|congratulations|congrats|thx|with|from"
)
"""Words that begin a sentence after a name and a comma."""
_JOINED_STARTERS = (
    r"here|i|i'm|i've|we|please|can|could|would|attached|the|thanks|what|when|how|do|did|are|is|let|you|this"
)
"""Those that follow a name and a hyphen without a space: `Bart-here is …`."""
_ADDRESSED = rf"(?!(?i:{_NOT_NAMES})\b)(?![A-Z]{{3,}}\b|[A-Z]+\d|[A-Z]\b)(?:(?i:{_TITLES})\s+)?{_PERSON}"
_SEVERAL = rf"(?:\s*(?:,?\s*and\b|[/&,])\s*(?!(?i:{_NOT_NAMES})\b){_PERSON}){{0,8}}"
_SENTENCE_START = (
    r"(?:I (?:am|have|had|will|would|was|just|think|need|got|don't|wanted|want)|here (?:is|are)|"
    r"please(?! find)|can you|could you|did you|do you|are you|attached (?:is|are))\b"
)
_VERBS = (
    r"(?:hope|think|guess|wish|believe|know|glad|did|does?|should|would|could|can|will|may|might|am|are|is|was|were|have|"
    r"has|had|not|call|see|let|enron|trust|feel|said|when|thought|only|everything|something|someone|anyone)"
)
_GREETING = re.compile(
    rf"^\s*(?i:{_GREETING_WORDS})\b[ ,]*"
    rf"(?:(?:(?i:{_TITLES})\s+)?(?:{_OTHER}|(?i:{_ALL})|(?:and|und|et|y|e)\b|&|/|,)[ ,]*){{0,8}}[,:;.!–—\s-]*$"
)
_ADDRESS = re.compile(
    rf"^\s*(?!(?i:{_NOT_NAMES})\b)(?:{_TITLES}\s+)?(?:{_PERSON}(?:(?:\s*[,/&]\s*|\s+(?:and\s+)?){_PERSON}){{0,5}}|{_ALL}|"
    r"(?i:all|gentlemen|ladies))\s*(?:[,:;–—]|--?|\s-)+[\s.]*$"
)
"""Names alone before a comma, colon or dash: `Jeff/Brenda:`."""
_DAYS = r"christmas|xmas|thanksgiving|easter|birthday|halloween|\w+day"
_INLINE = re.compile(
    rf"^\s*(?P<greeting>(?:(?i:{_GREETING_WORDS})\b[ ,]*(?:(?i:{_TITLES})\s+)?"
    rf"(?:(?:{_PERSON}|(?i:{_ALL}))(?:\s*(?:,(?!\s\s)|/|&|and|und)\s*{_OTHER}){{0,8}}(?: {_PERSON}){{0,5}}"
    rf"|\w+(?: \w+){{0,2}}(?=\s*[,:-])|\w+(?: \w+){{3,5}}(?=[,:]\s\s+[A-Z]))?"
    rf"\s*(?:[,:;!.–—]|--|\s-\s|-\s|\s\s)"
    rf"|(?i:hi|hello|hey) (?i:{_ALL})(?=\s+[a-zI])"
    rf"|Dear (?:[\w&'/-]+ ){{0,9}}[\w&'/-]+(?::|[,.](?=\s\s))(?=\s+[A-Z])"
    rf"|(?i:happy|merry) (?:(?i:new|holidays?|year|{_DAYS}),?\s+){{1,2}}(?!(?i:to|and)\b){_PERSON}\s*(?:[,!]|\.{{3,}})+"
    rf"|To (?:[Tt]he|[Aa]ll|[Oo]ur|[Mm]y)(?:\s+[A-Z][\w&'-]*){{1,6}}(?: et al\.?)?\s*[:;,]\s\s"
    rf"|(?i:{_ALL}|gentlemen|ladies)\s*(?:[,:;!–—]|--|\s-\s|-\s\s)"
    rf"|(?!(?i:{_NOT_NAMES})\b)(?:[\w&']+\s+){{0,3}}(?i:{_PEOPLE})(?:\s+(?:and|&)\s+(?i:{_PEOPLE}))?"
    rf"\s*(?:[,:;!–—-]+)\s\s+(?=[A-Z])"
    rf"|{_ADDRESSED}{_SEVERAL}(?:\s+{_PERSON})?\s*(?:[:;]|--|\s-\s|-\s\s|[,.;:]\s\s)"
    rf"|{_ADDRESSED}{_SEVERAL}\s\s(?=[A-Z]\w*\s+[a-z])"
    rf"|(?i:{_TITLES})\s+{_PERSON}(?:\s+{_PERSON})?\s*,(?=\s)"
    rf"|(?!(?:{_NOT_NAMES})\b)[a-z]{{2,12}}(?: and [a-z]{{2,12}})?,\s\s(?=\w)"
    rf"|(?!(?i:{_VERBS})\b)(?!(?i:{_NOT_NAMES})\b)[A-Z][a-z]+(?=\s{_SENTENCE_START})"
    rf"|{_ADDRESSED}(?:\s*(?:[/&]|and)\s*{_PERSON}){{0,8}}\s*"
    rf"(?:,(?=\s+[A-Z](?!\w+ and\b))|,(?=\s+(?:{_STARTERS})\b)"
    rf"|-(?=\s+[A-Z])|-(?=\s+(?:{_STARTERS})\b)|-(?=(?:{_JOINED_STARTERS})\b)))"
    rf"[,:;!.\s–—-]*)(?P<rest>.*)$"
)
"""`Hi Ann, …`, `Phillip;  Could you …`, `Jeff/Brenda:  Please …`, `Jim, thanks for …`."""
_ENCODED = re.compile(
    r"^(?:(?:\s*=(?:09|20))+|\s*\(See attached file: [^)]*\)|\s*\*\*+ [^*]{3,60} \*\*+|"
    r"\s*\S+@\S+ writes to (?:the )?[^:\n]{3,60}:\s)+\s*"
)
"""White space of a transfer encoding that was not decoded, and notes of programs."""
_LABEL = re.compile(r"(?:^|\s\s)[A-Z][\w&#/-]*(?: [\w&#/-]+){0,3}:(?=\s)")
"""A label of a form: `Message Date: …`."""

_LETTERHEAD = re.compile(
    rf"^\s*(?P<greeting>(?:Please respond to\b.{{0,100}}?|.{{1,150}}?\s\s+)Dear\s+(?:(?i:{_TITLES})\s+)?{_PERSON}"
    rf"(?:(?: |\s*(?:,(?!\s\s)|/|&|and)\s*){_PERSON}){{0,4}}\s*(?:[,:]|\s(?=\s*[A-Z])))\s+(?P<rest>\S.*)$"
)
"""A greeting that a heading precedes: `Company Profile      Dear Colleague:  We …`."""
_APPOSITION = re.compile(
    r"(?:Chairman|President|CEO|Director|Head|Vice President)\b[^.?!]{0,60}\b(?:has|is|was|will|had|would|can)\b|"
    r"(?:our|my|his|her|their|the|an?)\s[^.?!,;:]{3,60},\s+(?:has|is|was|will|had|would|can|and|who)\b",
    re.IGNORECASE,
)
"""What explains a name: `Jason, our new technician, has …`."""


@cache
def given_name() -> str:
    """Return the pattern of a common given name with its capital."""
    names = (resources.files("regard.reply") / "lists" / "names.txt").read_text(encoding="utf-8").split()
    return rf"{_any_of(sorted({name.capitalize() for name in names}))}\b"


def _any_of(words: Sequence[str]) -> str:
    """Return the pattern of one of sorted words, nested by their first letters: with thousands of words much faster."""
    if list(words) == [""]:
        return ""
    parts = [
        re.escape(letter) + _any_of([word[1:] for word in group])
        for letter, group in groupby((word for word in words if word), key=lambda word: word[0])
    ]
    pattern = parts[0] if len(parts) == 1 and "" not in words else f"(?:{'|'.join(parts)})"
    return f"{pattern}?" if "" in words else pattern


@cache
def _addressees() -> re.Pattern[str]:
    people = rf"{_PEOPLE}|users?|traders?|customers?|clients?|members?|participants?|subscribers?|shippers?|dear|hello"
    return re.compile(rf"\b(?:{given_name()}|{people})\b", re.IGNORECASE)


def names_addressee(words: str) -> bool:
    """Return whether words hold a common given name, in whatever case, or a noun for those addressed (`Users`)."""
    return _addressees().search(words) is not None


def begins_text(words: str) -> bool:
    """Return whether words begin as a sentence or a label does, and not as an address."""
    first = re.match(rf"\s*(?:{_NOT_NAMES})\b", words, re.IGNORECASE)
    return first is not None and not re.match(rf"\s*(?:attention|{_PEOPLE})\b", words, re.IGNORECASE)


@cache
def _given_names() -> re.Pattern[str]:
    """Return the pattern of lines that begin with given names: `Kevin, given the …`, `Mary Kay and Drew, see …`."""
    given = given_name()
    more = (
        rf"(?:\s*(?:,?\s*and\b|[/&,])\s*{given}(?!\s+(?:and|will|is|has|was|would|can|[A-Z]))|\s+{given}| [A-Z]\b\.?)"
    )
    return re.compile(
        rf"^\s*(?P<greeting>{given}(?:"
        rf"(?:(?:,?\s+|\s*[/&]\s*|,?\s+and(?:/or)?\s+){given}){{1,8}}"
        rf"(?::|[,:;](?=\s\s)|\s(?=\s)|(?=\s(?:The|This|I|We|Please|Can|Could)\s))(?=\s+[A-Z])|"
        rf"{more}{{0,5}}(?:\s*(?:[,:;!]|\.{{3,}}|--?(?=\s|[A-Za-z]+ [a-z])|[–—])+|"
        rf"\s(?=\s+[A-Z][\w']*,? [\w(])|"
        rf"\s(?=(?:Please|Can|Could|Would|Will|Here|Attached|Thanks|I|We|Do|Did|Are|Let|Just)\s[a-z])|"
        rf"\s(?=(?:as per|per (?:our|your|my)|this is|here (?:is|are)|please|can you|could you|attached (?:is|are))\s)"
        rf")))\s*"
        rf"(?!(?:and|or|who|which|with)\b|{given}(?:\s+[A-Z]\w+)?(?:,| and\b))(?P<rest>\S.*)$"
    )


@cache
def _named_only() -> re.Pattern[str]:
    """Return the pattern of a line that is a given name and dots: `Fran...`."""
    return re.compile(rf"\s*{given_name()}\.{{2,}}\s*$")


def find_greeting(lines: list[str]) -> tuple[str, int, str]:
    """Return the greeting, the index of the first line after it, and the rest of its own line."""
    first = next((index for index, line in enumerate(lines) if any(map(str.isalnum, line))), len(lines))
    if first == len(lines):
        return "", first, ""
    line = _ENCODED.sub("", lines[first])
    if letter := _LETTERHEAD.match(line):
        return letter["greeting"].strip(), first + 1, letter["rest"].strip()
    if _GREETING.match(line) or _ADDRESS.match(line) or _named_only().match(line):
        return line.strip(), first + 1, ""
    inline = _given_names().match(line) or _INLINE.match(line)
    if inline and inline["rest"].strip() and not _is_text(inline["greeting"], inline["rest"]):
        return inline["greeting"].strip(), first + 1, inline["rest"].strip()
    return "", first, ""


def _is_text(greeting: str, rest: str) -> bool:
    """Return whether what looks like a greeting belongs to the text.

    It may be the subject of a sentence, or the label of a form, which numbers or more labels follow.
    """
    if greeting.rstrip().endswith(",") and _APPOSITION.match(rest):
        return True
    if re.search(rf"\b(?:{_ALL}|{_PEOPLE})\b", greeting, re.IGNORECASE) or re.match(given_name(), greeting):
        return False
    return greeting.rstrip().endswith(":") and (rest[:1].isdigit() or _LABEL.search(rest[:200]) is not None)
