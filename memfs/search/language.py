"""Tells the language of a text by its function words, letters and endings: cheap, and always the same answer.

Owns the words that say nothing, by language. Names of languages are ISO 639 codes. A text that shows no other
language is taken for English.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

MOST = 2
"""A short text may be in several languages: it is taken for at most so many."""

# Folded as terms are, without accents and in lower case.
_STOP_WORDS = {
    "en": (
        "a about above after again all also am an and any are as at be because been before being below between both "
        "but by can cannot could d did do does doing don down during each few for further from had has have having "
        "he her here hers herself him himself his how i if in into is isn it its itself just ll m me more most my "
        "myself nor of off on once or other our ours ourselves out over own re s same shall she should so some such "
        "t than that the their theirs them themselves then there these they this those through to too under until up "
        "us ve very was wasn we were what when where which while who whom whose why will with would you your yours "
        "yourself yourselves"
    ),
    "de": (
        "aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes anstatt auch "
        "auf aus bei beim bevorzuge bin bis bist bitte da dabei dafur dagegen daher damit danach dann daran darauf "
        "daraus darin das dass dasselbe davon dazu dein deine deinem deinen deiner dem den denen denn der deren des "
        "deshalb dessen dich die dies diese dieselbe diesem diesen dieser dieses dir doch dort du durch ein eine "
        "einem einen einer eines einige er es etwas euch euer fuer fur gegen gibt hab habe haben hat hatte hatten "
        "hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in indem ins ist ja jede jedem jeden "
        "jeder jedes jener jetzt kann kannst kein keine keinem keinen keiner koennen konnen konnte lass lassen lasst "
        "man mein meine meinem meinen meiner mich mir mit mochte muessen muss mussen nach nein nicht nichts nie "
        "niemals nimm noch nun nur ob oder ohne sein seine seinem seinen seiner seit sich sie sind so solche soll "
        "sollen sollte sondern sonst statt stattdessen stets uber ueber um und uns unser unsere unserem unseren "
        "unserer unter viel vom von vor war waren warum was weil welche welchem welchen welcher welches wenn wer "
        "werden wessen wie wieder wieso will wir wird wirst wo woher wohin wollen worden wurde wurden zu zum zur "
        "zwar zwischen"
    ),
    "fr": (
        "a ai aient alors apres as au aucun aucune aussi autre autres aux avaient avait avant avec avez avoir avons "
        "bien c ca car ce ceci cela celle celles celui ces cet cette ceux chaque ci comme comment d dans de dedans "
        "deja depuis des deux doit donc dont du elle elles en encore entre es est et etaient etait etant ete etes "
        "etre eu eux faire fait faut fois font ici il ils j jamais je jusqu l la le les leur leurs lors lorsque lui "
        "m ma mais me meme memes mes moi moins mon n ne ni nos notre nous on ont ou par parce pas peu peut peuvent "
        "plait plus plusieurs plutot pour pourquoi prefere puis qu quand que quel quelle quelles quelque quels qui "
        "quoi s sa sans se sera ses seulement si sinon soit sommes son sont sous souvent sur t ta tandis te tes toi "
        "ton toujours tous tout toute toutes tres trop tu un une vers veux voici voila vont vos votre voudrais vous "
        "y"
    ),
    "es": (
        "a al algo alguna algunas alguno algunos ambos ante antes aquel aquella aquello aquellos aqui asi aun aunque "
        "cada como con contra cual cuales cualquier cuando cuanto de del desde donde dos durante e el ella ellas "
        "ellos en entonces entre era eran eres es esa esas ese eso esos esta estaba estaban estamos estan estar "
        "estas este esto estos estoy fue fueron ha haber habia han has hasta hay he hemos jamas la las le les lo los "
        "mas me mi mientras mis mismo muy nada ni no nos nosotros nuestra nuestras nuestro nuestros nunca o os otra "
        "otras otro otros para pero poco por porque prefiero puede pueden pues que quien quienes quiero se sea segun "
        "ser si sido siempre sin sino sobre sois solo somos son soy su sus tal tambien tampoco tan tanto te tengo ti "
        "tiene tienen toda todas todo todos tu tus un una unas uno unos usted ustedes va vosotros y ya yo"
    ),
    "pt": (
        "a agora ainda alem algum alguma algumas alguns ali ante antes ao aos apenas aquela aquelas aquele aqueles "
        "aquilo as assim ate cada com como contra da dao das de dela delas dele deles desde dessa desse desta deste "
        "disso do dos e ela elas ele eles em enquanto entao entre era eram essa essas esse esses esta estamos estao "
        "estar estas estava estavam este estes estou eu foi foram gostaria ha isso isto ja jamais la lhe lhes lo "
        "mais mas me mesma mesmo meu meus minha minhas muito muitos na nao nas nem nessa nesse nesta neste no nos "
        "nossa nossas nosso nossos num numa nunca o onde os ou outra outras outro outros para pela pelas pelo pelos "
        "pode podem pois por porem porque pouco prefiro quais qual qualquer quando quanto que quem quero sao se seja "
        "sem sempre ser seu seus si sido so sob sobre sou sua suas tal tambem tao te tem temos tenho ter teu tinha "
        "toda todas todo todos tu tua um uma umas uns vai voce voces vos"
    ),
    "it": (
        "a ad agli ai al alcuna alcune alcuni all alla alle allo allora altra altre altri altro anche ancora avere "
        "aveva c che chi ci cio co coi col come con contro cosa cosi cui d da dagli dai dal dall dalla dalle dallo "
        "degli dei del dell della delle dello deve devono di dopo dove dunque durante e ed era erano essere fa "
        "favore fino fra fu gia gli ha hai hanno ho i il in invece io l la le lei li lo loro lui ma mai me mentre mi "
        "mia mie miei mio molto ne negli nei nel nell nella nelle nello nessun nessuna no noi non nostra nostre "
        "nostri nostro o ogni oppure per perche pero piu poi poiche preferisco prima puo qua qual qualche quale "
        "quali quando quanto quel quell quella quelle quelli quello questa queste questi questo qui quindi sara se "
        "sei sempre senza si sia siamo siete solo sono sopra sotto sta stata stato stessa stesso su sua sue sugli "
        "sui sul sull sulla sulle suo suoi tra tu tua tue tuo tuoi tutta tutte tutti tutto un una uno vengono vi "
        "viene voglio voi vorrei vostro"
    ),
    "nl": (
        "aan al alle alleen als alsjeblieft alstublieft altijd andere ben bij bijvoorbeeld binnen daar daarom dan "
        "dat de deze die dit doen door dus echter een eens elk elke en er erg ge geen geweest graag haar had hadden "
        "heb hebben heeft hem het hier hij hoe hun iets ik in is ja je jij jou jouw jullie kan kon kunnen kunt "
        "liever maar me meer men met mij mijn moet moeten na naar nadat niet niets nog nooit nu of om omdat onder "
        "ons onze ook op over reeds te tegen ten ter toch toen tot tussen u uit uw van vanaf veel verder via voor "
        "voordat waar waarbij waarom wanneer want waren was wat we wel welk welke werd werden wie wij wil worden "
        "wordt ze zelf zich zij zijn zo zoals zonder zou zouden zullen"
    ),
    "sv": (
        "aldrig alla allt alltid an andra annan at att av bara blev bli blir da dar de dem den denna deras dess "
        "dessa det detta dig din dina ditt du efter eller en er ett for fran genom ha hade han hans har hennes hon "
        "honom hur i icke ingen inget inom inte ja jag kan kunde man med mellan men mig min mina mitt mot mycket "
        "nagon nagot nagra nar ni nu och om oss pa sa sig sin sina sitt ska skall skulle som till under upp ur ut "
        "utan vad var vara varfor vart vem vi vid vilka vilken vilket"
    ),
    "da": (
        "af aldrig alle alt altid anden andre at blev blive bliver da de dem den denne der deres det dette dig din "
        "dine disse dit dog du efter eller en end er et for fra ham han hans har havde have hendes her hos hun hvad "
        "hvem hvilke hvilken hvis hvor hvordan hvorfor i ikke ind ingen jeg jer jo kan kun kunne man mange med meget "
        "men mig min mine mit mod naar nar ned nej nogen noget nogle nu og ogsa om op os over pa sa selv sig sin "
        "sine sit skal skulle som thi til ud under vaere vaeret var ved vi vil ville vor"
    ),
    "no": (
        "aldri alle alltid alt andre at av bare ble bli blir da de dem den denne der deres det dette din disse du "
        "eller en enn er et ett etter for fra ha hadde han hans har hennes her hos hun hva hvem hver hvilke hvilken "
        "hvis hvor hvordan hvorfor i ikke ingen inn jeg kan kun kunne man mange med meg mellom men mens min mitt mot "
        "mye na nar noe noen og ogsa om opp oss over pa sa seg selv sin sine sitt skal skulle slik som til under ut "
        "uten vaere vaert var vart ved vi vil ville"
    ),
    "fi": (
        "ehka ei eika eivat eli ella en ennen entta han hanen he heidan ilman itse ja jo joka jolla jonka jos joskus "
        "jota kaikki kanssa kautta keta koska koskaan kuin kuinka kuka kun kuten mika miksi milla milloin mina minka "
        "minun missa mita mutta myos ne niiden niin nyt ole olemme olen olet oleva oli olivat olla on onko ovat saa "
        "se seka sen siella siina sina sita sitten taa tai tama taman tassa te tuo vaan vai vain viela voi voidaan "
        "voit vuoksi yli"
    ),
    "pl": (
        "a aby albo ale ani az bardzo beda bedzie bez bo by byc byl byla bylo byly ci cie co cos czy dla dlaczego do "
        "dzieki gdy gdzie i ich ile inne inny ja jak jaka jaki jakie jako je jednak jego jej jesli jest jestem "
        "jezeli juz kazdy kiedy kto ktora ktore ktorego ktorej ktory ktorych ktorym ktorzy lub ma maja mam mi mnie "
        "moga moge moj moze mozna musi my na nad nam nas nasz nawet nic nich nie niego nigdy nim niz o od on ona oni "
        "oraz po pod poniewaz przed przez przy raz rowniez sa sie sobie swoj ta tak takie takze tam te tego tej ten "
        "tez to tu tych tylko tym w we wiec wszystkie wszystko wy z za zawsze ze zeby"
    ),
    "cs": (
        "a aby ale ani asi az bez bude budou by byl byla bylo byly byt co coz dalsi do i jak jake jako je jeho jej "
        "jeji jejich jen jeste jestli jsem jsi jsme jsou k kam kazdy kde kdo kdy kdyz ke ktera ktere ktereho kteri "
        "ktery ma mate me mezi mi mit mne mohou muj musi muze my na nad nam nas nase ne nebo nebyl neni nez nic o od "
        "on ona oni pak po pod podle pokud pouze prave pred prez pri pro proc proto protoze s se si sve svuj ta tak "
        "take takze tam te tedy ten tento teto to tohle toho tohoto tom tomto tomu tu ty u uz v vam vas vase ve vice "
        "vsak vsechny vy z za zde ze"
    ),
    "hu": (
        "a abban ahhoz ahogy ahol aki akkor ala altal am amely amelyek ami amikor annak arra az azok azon azt aztan "
        "azzal bar be csak de e egy egyes egyik el ele elo es ez ezek ezen ezert ezt ezzel fel ha hanem hiszen hogy "
        "hogyan hol igen igy illetve is itt kell ki kicsit kik le legyen lehet lesz lett ma maga majd mar meg mely "
        "melyek melyik mert mi miert mig mikor minden mint mit mivel most nagyon ne nekem nelkul nem nincs ok on ott "
        "pedig s sem sok szamara szerint szinte tehat tobb ugy utan vagy vagyok valami van vannak vele volt voltak"
    ),
    "ro": (
        "a acea aceasta aceea acel acela acele acest aceste acestea acestor acestui acolo acum ai aici al ale alt "
        "alta alte altul am ar are as asa asta astfel au avea aveti avut ca cand care catre ce cea cei cel cele ceva "
        "chiar cine cu cum da daca dar de deci despre din dintre doar dupa e ea ei el ele era este eu fara fi fie "
        "fiecare fost iar ii il imi in intr intre isi iti la le li lor lui mai mea mult ne nici nimic noi nostru nu "
        "o or ori pe pentru peste poate pot prin sa sau se si sub sunt suntem ti toate tot toti tu un una unde unei "
        "unele unor unui va voi vor"
    ),
    "tr": (
        "acaba ama ancak artik aslinda az bana bazi belki ben beni benim beri bile bir biri birkac biz bize bizi "
        "bizim boyle bu buna bunda bundan bunlar bunu bunun cok cunku da daha de defa degil diger diye dolayi eger "
        "en fakat gibi gore hangi hatta hem henuz hep hepsi her hic icin ile ilgili ise iste kadar karsi kendi kez "
        "ki kim kimse mi mu nasil ne neden nedenle nerede niye o olan olarak oldu oldugu olmak olmasi olur ona ondan "
        "onlar onu onun oysa sadece sanki sen siz sizin sonra su tum uzere var ve veya veyahut ya yani yapilan "
        "yerine yine yok zaten"
    ),
    "ca": (
        "a aixi aixo al algun alguna alguns als altra altre altres amb any aquell aquella aquest aquesta aquestes "
        "aquests aqui cada cap com d de del dels des doncs dos el ella ells els em en encara ens entre era eren es "
        "esta estan este fer fins ha haver he hem hi i ja jo l la les li llavors lo mes meu meva molt molts ni no "
        "nosaltres nostre o on pel pels per pero perque poc poden podeu pot puc qual quan que qui quin quina quins "
        "sempre sense ser seu seus seva si sino sobre soc sols son sota sovint tambe tan te tenir tot tota totes "
        "tots tu un una unes uns us va vaig van vostre"
    ),
    "id": (
        "ada adalah agar akan aku anda antara apa apakah atas atau bagaimana bagi bahwa belum bila bisa bukan dalam "
        "dan dapat dari dengan di dia hanya harus ia ini itu jika juga kami kamu karena ke kepada ketika kita lagi "
        "lain lebih maka mana masih mengapa mereka namun oleh pada para per pernah saat saja sangat saya sebagai "
        "sebelum sebuah secara sedang sejak semua seperti serta setelah setiap siapa sudah tanpa telah tentang "
        "terhadap tersebut tetapi tidak untuk yaitu yang"
    ),
    "ru": (
        "а без более бы был была были было быть в вам вас ведь весь вместо во вот все всегда всего всех вы где да "
        "даже для до его ее еи ему если есть еще же за здесь и из или им их к как какая какие каких какои когда кого "
        "которая которое которои которые которыи которых кто ли либо между меня мне может можно мои моя мы на над "
        "надо нам нас наш наша не него нее нет ни никогда них но ну о об однако он она они оно от очень по под "
        "пожалуиста после потому почему предпочитаю при про с сам своеи свои свою себя сеичас со так также такие "
        "такои там тебя тем то тобои тогда того тоже только том тот ты у уже хотя хочу чего чем что чтобы чье эта "
        "эти этих это этого этои этом этот эту я"
    ),
    "el": (
        "αλλα αν αντι απο αυτα αυτες αυτη αυτο αυτοι αυτος αυτου αυτων για δε δεν δια εαν ειμαι ειναι εκει ενα ενας "
        "επι εχει εχουν η ηταν θα ισως κ καθε και κατα κι μα με μετα μεχρι μη μην μια να ο οι ομως οπου οπως οσο "
        "οταν οτι ου ποια ποιο ποιος που πως σαν σας σε στα στη στην στις στο στον στους τα την της τι τις το τον "
        "του τους των ως"
    ),
}
# Words that mean something, and tell the language of a short order or of a question about a time all the same.
_ORDERS = {
    "de": (
        "benutze datei datenbank fehler gestern jahr jahren letzte letzten letztes monat monaten nutze schreib "
        "schreibe vergangene vermeide verwende vorige woche wochen zuletzt"
    ),
    "fr": "annee annees appelle derniere ecris erreur fichier hier semaine semaines utilise",
    "es": "ano anos archivo ayer cambio ejecuta escribe evita hace pasada pasado pruebas puedo utiliza ultima",
    "pt": "ano anos arquivo chame escreva evite ha mes ontem passada passado rode testes ultima",
    "it": (
        "anno anni chiamami esegui evita ieri mesi riesco rinomina scorsa scorso scrivere scrivi settimana settimane "
        "ultima usiamo"
    ),
    "nl": "bestand draai geleden gebruik gisteren jaar maand maanden schrijf vermijd vorig vorige weken",
}
# Words of other languages that stand in English texts, too: in names and titles, or as English words.
_ENGLISH_TOO = (
    "ad af ai al ali allen ate au avant bar bare ben bij bin biz c ca cap car care chi ci co com come comment con da "
    "dan dar de defa del den der des di die dig din dine dog dont door dos du e ed el em en end er era est et eu fa "
    "fi font fra fu fur go gore ha ham hat hay hem ii im ins itt j jake jest jo k ki l la las le li lo los mais man "
    "mar mas mate men met mi min mine mint mod mon mot n na ne ned ni no non nu o ok ole om one ons op os pa par pe "
    "per plus po pod pot pour prima pro sa sara se sea sem sense si sin sit solo son soy su sub sue sunt sur ta tai "
    "take tan te ten ter ti til till tom ton tot tu tue u um un ur v van var vase vi via vice vid von vor w war wat "
    "y ya yo z"
)
# Letters that few languages write, each with those that do.
_LETTERS = {
    "ß": "de",
    "ä": "de sv fi",
    "ö": "de sv fi hu tr",
    "ü": "de hu tr",
    "ñ¿¡": "es",
    "áíú": "es pt hu cs",
    "ó": "es pt hu pl ca",
    "ãõ": "pt",
    "â": "fr pt ro",
    "êô": "fr pt",
    "ç": "fr pt tr ca",
    "à": "fr it ca pt",
    "è": "fr it ca",
    "é": "fr es pt hu cs ca",
    "î": "fr ro",
    "ûœ": "fr",
    "ù": "fr it",
    "ì": "it",
    "ò": "it ca",
    "å": "sv da no",
    "æø": "da no",
    "łąęśżźćń": "pl",
    "řěůčšžý": "cs",
    "őű": "hu",
    "ğşı": "tr",
    "ășțţ": "ro",
}
# Endings, folded, that hardly any English word has.
_ENDINGS = {
    "de": "ungen keiten heiten schaften ierung ung keit lichen ischen",
    "es": "cion iones miento mientos idades",
    "pt": "cao coes mentos avel aveis",
    "it": "zione zioni mento menti",
    "nl": "heid heden lijk lijke aties ingen",
    "fr": "eurs euse euses iques ements",
}
_SCRIPTS = {
    "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff",
    "ja": "\u3041-\u30ff",
    "zh": "\u4e00-\u9fff",
    "ko": "\uac00-\ud7a3",
    "th": "\u0e01-\u0e5b",
    "ar": "\u0620-\u06ff",
    "hi": "\u0904-\u0939",
}
_ALSO_ENGLISH = 0.5
"""What a word counts that is an English one, too; any other counts 1."""
_SIGN = 0.7
"""What a letter or an ending counts."""
_SHARED = 0.5
"""What an English word counts for English that the other language has, too."""
_FEWEST = 1.0
_MORE = 1.5
"""What they must count together beside an English word, where all may be English."""
_CLOSE = 0.75
_SHORT = 12
_LONG = 6
"""Letters; an ending tells nothing of a word that has no more."""


def languages(words: Collection[str], text: str) -> tuple[str, ...]:
    """The languages that a text seems to be in, besides English, likeliest first; none for what may be English.

    At most two: those of a short text are not always told apart.

    Args:
        words: the words of the text, folded; in any case.
        text: the text itself.
    """
    plain = text.isascii() or _letter().search(text) is None
    bare = False
    if len(words) <= _SHORT:
        said = {word.lower() for word in words}
        bare = len(stop_words("en").intersection(said)) <= 1
        if plain and not bare and _telling().isdisjoint(said):
            return ()
    elif plain and _telling().isdisjoint(words):  # nearly all English texts: they are to cost nothing
        return ()
    said = {word.lower() for word in words}
    ended = [word for word in said if word.endswith(_endings()) and len(word) > _LONG] if bare else []
    if plain and not ended and _function_words().isdisjoint(said):
        return ()
    english, letters = stop_words("en") & said, frozenset(text.casefold())
    least = _FEWEST if not english or not _telling().isdisjoint(said) else _MORE
    likely: dict[str, float] = {}
    for code in _STOP_WORDS:
        own = _words(code) & said
        score = sum(1.0 if word in _telling() else _ALSO_ENGLISH for word in own)
        score += _SIGN * (len(_letters(code) & letters) + sum(word.endswith(_endings(code)) for word in ended))
        shared = len(english & own)
        if code != "en" and score >= least and score > len(english) - shared + _SHARED * shared:
            likely[code] = score
    close = [code for code, score in likely.items() if score >= _CLOSE * max(likely.values())]
    return tuple(sorted(close, key=lambda code: -likely[code])[:MOST])


def by_script(text: str) -> tuple[str, ...]:
    """The languages that the scripts of a text tell: Russian, Greek, Japanese, Chinese, Korean, Thai, Arabic, Hindi."""
    found = tuple(code for code, script in _scripts().items() if script.search(text))
    return tuple(code for code in found if code != "zh" or "ja" not in found)  # Japanese is written with both


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {code: re.compile(f"[{script}]") for code, script in _SCRIPTS.items()}


@cache
def in_latin_letters() -> tuple[str, ...]:
    """The languages that a text in Latin letters may be told to be in, but English."""
    return tuple(code for code in _STOP_WORDS if code not in ("en", *_SCRIPTS))


@cache
def stop_words(code: str) -> frozenset[str]:
    """The words of a language that say nothing, folded; empty for one whose are not known."""
    return frozenset(_STOP_WORDS.get(code, "").split())


@cache
def _words(code: str) -> frozenset[str]:
    return stop_words(code).union(_ORDERS.get(code, "").split())


@cache
def _function_words() -> frozenset[str]:
    every = " ".join((*_STOP_WORDS.values(), *_ORDERS.values()))
    return frozenset(every.split()) - stop_words("en")


@cache
def _telling() -> frozenset[str]:
    """The words that tell a language: that are no English words, too."""
    return _function_words().difference(_ENGLISH_TOO.split())


@cache
def _letter() -> re.Pattern[str]:
    return re.compile(f"[{''.join(_LETTERS)}]", re.IGNORECASE)


@cache
def _letters(code: str) -> frozenset[str]:
    return frozenset(letter for letters, codes in _LETTERS.items() if code in codes.split() for letter in letters)


@cache
def _endings(code: str = "") -> tuple[str, ...]:
    """What a word of a language, or of any, may end in."""
    return tuple(_ENDINGS.get(code, "").split()) if code else tuple(" ".join(_ENDINGS.values()).split())
