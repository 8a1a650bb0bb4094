"""Mails as common clients compose them in five languages: an answer, and below or around it what it quotes."""

from collections.abc import Iterator
from email.message import EmailMessage
from typing import NamedTuple

OLD = ["Could you send me the figures of last month?", "We need them for the board, and for the audit on Friday."]
ANSWERS = {
    "en": "Of course, I will send them this afternoon.",
    "de": "Natürlich, ich schicke sie heute Nachmittag.",
    "fr": "Bien sûr, je les envoie cet après-midi.",
    "es": "Por supuesto, los envío esta tarde.",
    "it": "Certo, li mando questo pomeriggio.",
}
ATTRIBUTIONS = {
    "en": [
        "On Mon, Mar 4, 2024 at 9:12 AM Ann Lee <ann@example.org> wrote:",
        "On Mon, 4 Mar 2024, 09:12 Ann Lee, <ann@example.org> wrote:",
        "On 04/03/2024 09:12, Ann Lee wrote:",
        "On Mar 4, 2024, at 9:12 AM, Ann Lee <ann@example.org>\nwrote:",
        "On Monday, March 4, 2024 at 09:12:00 AM GMT+1, Ann Lee <ann@example.org> wrote:",
    ],
    "de": [
        "Am Mo., 4. März 2024 um 09:12 Uhr schrieb Ann Lee <ann@example.org>:",
        "Am 04.03.24 um 09:12 schrieb Ann Lee:",
        "Am 04.03.2024 um 09:12 schrieb Ann Lee <ann@example.org>:",
        "Ann Lee <ann@example.org> schrieb am Mo., 4. März 2024, 09:12:",
        "Am Montag, 4. März 2024 um 09:12:00 MEZ hat Ann Lee <ann@example.org> Folgendes\ngeschrieben:",
    ],
    "fr": [
        "Le lun. 4 mars 2024 à 09:12, Ann Lee <ann@example.org> a écrit :",
        "Le 04/03/2024 à 09:12, Ann Lee a écrit :",
        "Le 4 mars 2024 à 09:12, Ann Lee <ann@example.org> a écrit :",
        "Le lundi 4 mars 2024 à 09:12:00 UTC+1, Ann Lee <ann@example.org> a\nécrit :",
    ],
    "es": [
        "El lun, 4 mar 2024 a las 9:12, Ann Lee (<ann@example.org>) escribió:",
        "El 04/03/2024 a las 9:12, Ann Lee escribió:",
        "El 4 mar 2024, a las 9:12, Ann Lee <ann@example.org> escribió:",
        "El lunes, 4 de marzo de 2024, 09:12:00 CET, Ann Lee <ann@example.org>\nescribió:",
    ],
    "it": [
        "Il giorno lun 4 mar 2024 alle ore 09:12 Ann Lee <ann@example.org> ha scritto:",
        "Il 04/03/2024 09:12, Ann Lee ha scritto:",
        "Il giorno 4 mar 2024, alle ore 09:12, Ann Lee <ann@example.org> ha\nscritto:",
        "Il lunedì 4 marzo 2024 alle ore 09:12:00 CET, Ann Lee <ann@example.org> ha scritto:",
    ],
}
HEADERS = {
    "en": ("From", "Sent", "To", "Subject"),
    "de": ("Von", "Gesendet", "An", "Betreff"),
    "fr": ("De", "Envoyé", "À", "Objet"),
    "es": ("De", "Enviado", "Para", "Asunto"),
    "it": ("Da", "Inviato", "A", "Oggetto"),
}
ORIGINAL = {
    "en": "-----Original Message-----",
    "de": "-----Ursprüngliche Nachricht-----",
    "fr": "-----Message d'origine-----",
    "es": "-----Mensaje original-----",
    "it": "-----Messaggio originale-----",
}
FORWARDS = {
    "en": ["---------- Forwarded message ---------", "Begin forwarded message:"],
    "de": ["-------- Weitergeleitete Nachricht --------", "Anfang der weitergeleiteten Nachricht:"],
    "fr": ["---------- Message transféré ---------", "Début du message réexpédié :"],
    "es": ["---------- Mensaje reenviado ---------", "Inicio del mensaje reenviado:"],
    "it": ["---------- Messaggio inoltrato ---------", "Inizio messaggio inoltrato:"],
}


class Composed(NamedTuple):
    """A mail, and its author's own words."""

    name: str
    content: bytes
    own: str


def composed_mails() -> Iterator[Composed]:
    """Yield every combination of client and language."""
    quoted = "\n".join(f"> {line}" for line in OLD)
    for language, own in ANSWERS.items():
        for number, attribution in enumerate(ATTRIBUTIONS[language]):
            yield _plain(f"{language} quoted {number}", f"{own}\n\n{attribution}\n\n{quoted}\n", own)
            yield _plain(f"{language} unmarked {number}", f"{own}\n\n{attribution}\n\n" + "\n".join(OLD), own)
            inline = f"{attribution}\n\n> {OLD[0]}\n\n{own}\n\n> {OLD[1]}\n\nOK.\n"
            yield _plain(f"{language} between {number}", inline, f"{own}\n\nOK.")
            yield _html(
                f"{language} gmail {number}",
                f'<div dir="ltr">{own}</div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">'
                f"{attribution.replace('<', '&lt;')}<br></div><blockquote>{'<br>'.join(OLD)}</blockquote></div>",
                own,
            )
        header = "\n".join(f"{name}: x y" for name in HEADERS[language])
        bold = "\n".join(f"*{name}:* x y" for name in HEADERS[language])
        rule = "_" * 32
        below = "\n".join(OLD)
        yield _plain(f"{language} outlook", f"{own}\n\n{rule}\n{header}\n\n{below}\n", own)
        yield _plain(f"{language} outlook bold", f"{own}\n\n{bold}\n\n{below}\n", own)
        yield _plain(f"{language} original", f"{own}\n\n{ORIGINAL[language]}\n{header}\n\n{below}\n", own)
        yield _html(
            f"{language} outlook html",
            f'<p>{own}</p><hr><div id="divRplyFwdMsg"><b>{HEADERS[language][0]}:</b> Ann<br>'
            f"<b>{HEADERS[language][1]}:</b> x<br><b>{HEADERS[language][2]}:</b> y<br>"
            f"<b>{HEADERS[language][3]}:</b> z<br></div><div id='appendonsend'></div>",
            own,
        )
        yield _html(
            f"{language} apple html",
            f"<html><head></head><body>{own}<div><blockquote type='cite'>{OLD[0]}</blockquote></div></body></html>",
            own,
        )
        for number, mark in enumerate(FORWARDS[language]):
            yield _plain(f"{language} forward {number}", f"{own}\n\n{mark}\n\n{header}\n\n{below}\n", own)


def _message(name: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = f"Re: {name}", "Bo <bo@example.org>", "Ann <ann@example.org>"
    message["Message-ID"] = f"<{name.replace(' ', '-')}@example.org>"
    return message


def _plain(name: str, text: str, own: str) -> Composed:
    message = _message(name)
    message.set_content(text)
    return Composed(name, message.as_bytes(), own)


def _html(name: str, html: str, own: str) -> Composed:
    message = _message(name)
    message.set_content(html, subtype="html")
    return Composed(name, message.as_bytes(), own)
