"""Function words, which METEOR weights less than content words.

METEOR 1.5 uses words that make up more than a thousandth of a large corpus; these lists are our own, by word class:
articles, pronouns, prepositions, conjunctions, auxiliaries, particles (an apostrophe ends a word) and marks.
"""

_ENGLISH = """
a an the this that these those i me my you your he him his she her it its we us our they them their who whom whose
which what there of in to for on at by with from into about over under after before between through during against
without within as than and or but nor so if because while when where although though until unless am is are was were be
been being have has had having do does did done will would shall should can could may might must not no s t
"""
_GERMAN = """
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner dieser diese dieses diesen
diesem ich mich mir mein meine du dich dir er ihn ihm sein seine seinen seinem seiner sie ihr ihre ihren ihrem ihrer es
wir uns unser euch ihnen sich man wer was welche welcher in im ins an am ans auf aus bei beim mit nach von vom zu zum
zur für über unter vor hinter neben zwischen durch gegen ohne um bis seit während wegen und oder aber denn sondern dass
daß ob weil wenn als wie da wo so bin bist ist sind seid war waren wäre sein gewesen habe hast hat haben hatte hatten
werde wird werden wurde wurden worden würde kann können konnte muss müssen soll sollen will wollen darf nicht auch nur
"""
_FRENCH = """
le la les l un une des du de d au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs
je j me m tu te t il elle on nous vous ils elles se s lui y en qui que qu quoi dont où à dans par pour sur sous
avec sans entre vers chez contre depuis pendant et ou mais ni car si comme quand parce est suis es sommes êtes sont
était étaient été être a ai as avons avez ont avait avaient eu avoir fait peut doit ne n pas plus
"""
_SPANISH = """
el la los las lo un una unos unas este esta estos estas ese esa esos esas mi mis tu tus su sus nuestro nuestra yo me te
él ella nos ellos ellas se le les que quien cual cuyo de del a al en por para con sin sobre entre hasta desde hacia
contra y e o u pero ni si como cuando porque donde es son soy era eran fue fueron ser sido está están estaba estar ha
han he había haber no más
"""
_MARKS = ". , ; : ! ? - – — ( ) [ ] \" ' « » „ “ ” ‚ ‘ ’ … / ¿ ¡"


def _word_set(words: str) -> frozenset[str]:
    return frozenset((words + " " + _MARKS).split())


FUNCTION_WORDS = {
    "en": _word_set(_ENGLISH),
    "de": _word_set(_GERMAN),
    "fr": _word_set(_FRENCH),
    "es": _word_set(_SPANISH),
}
"""Function words by language; other languages have none."""
