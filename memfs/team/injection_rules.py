"""The signs of an instruction: wordings by which a text sets itself above its reader's orders, or hides from a person.

Owns the patterns alone. Each is tried on every line of a memory that a review looks at, so none may take more than
linear time; what they are tried on, and what is only spoken of, ``memfs.team.injection`` says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OVERRIDE: tuple[str, ...] = (
    # German
    (
        r"\b(?:ignorier|vergiss|vergesst|missacht|verwirf)\w*\s+(?:bitte\s+)?(?:alle|s[äa]mtliche|die|deine|jede)\w*\s+(?:\w+\s+)?"
        r"(?:vorherigen|bisherigen|fr[üu]heren|obigen|vorigen|vorangegangenen)\w*\s+(?:anweisung|befehl|instruktion|regel|vorgabe)"
    ),
    (
        r"\b(?:ignorier|vergiss|vergesst|missacht)\w*\s+(?:bitte\s+)?alles,?\s+was\s+(?:dir|euch|du|ihr)\s+(?:\w+\s+){0,3}"
        r"(?:vorher|bisher|zuvor|fr[üu]her|oben|gesagt)\b"
    ),
    # French
    (
        r"\b(?:ignore[zr]?|oublie[zr]?|n[ée]glige[zr]?)\s+(?:toutes?\s+)?(?:les|vos|tes|ces)\s+(?:instructions|consignes|r[èe]gles|"
        r"directives)\s+(?:pr[ée]c[ée]dentes|ant[ée]rieures|ci-dessus|initiales)"
    ),
    # Spanish
    (
        r"\b(?:ignor[ae]r?|olvid[ae]r?|descart[ae]r?)\s+(?:todas\s+)?(?:las|tus|sus)\s+(?:instrucciones|reglas|[óo]rdenes|indicaciones)\s+"
        r"(?:anteriores|previas|de\s+arriba)"
    ),
    # Italian
    (
        r"\b(?:ignor[ai]|dimentica|trascura)(?:re|te)?\s+(?:tutte\s+)?(?:le|tue|queste)\s+(?:tue\s+)?(?:istruzioni|regole|indicazioni)\s+"
        r"(?:precedenti|sopra|iniziali)"
    ),
    # Portuguese
    (
        r"\b(?:ignore|ignora|esque[çc]a|desconsidere)\s+(?:todas\s+)?(?:as|suas|tuas)\s+(?:suas\s+)?(?:instru[çc][õo]es|regras|ordens)\s+"
        r"(?:anteriores|pr[ée]vias|acima)"
    ),
    # Dutch
    r"\b(?:negeer|vergeet)\s+(?:alle\s+|de\s+|je\s+)?(?:eerdere|vorige|voorgaande|bovenstaande)\s+(?:instructies|opdrachten|regels)",
    # Polish
    (
        r"\b(?:z?ignoruj|zapomnij|pomi[ńn])\w*\s+(?:o\s+)?(?:wszystki\w+\s+)?(?:poprzedni|wcze[śs]niejsz|powy[żz]sz)\w+\s+"
        r"(?:instrukcj|polece[ńn]|zasad)"
    ),
    # Turkish
    r"\b[öo]nceki\s+(?:t[üu]m\s+|b[üu]t[üu]n\s+)?(?:talimat|komut|kural)\w*\s+(?:yok\s+say|g[öo]rmezden\s+gel|unut)",
    # Russian
    (
        r"\b(?:про)?(?:игнорируй|забудь|отбрось)\w*\s+(?:\w+\s+)?(?:предыдущ|прежн|прошл|ранее|вышеуказан)\w*\s+(?:\w+\s+)?"
        r"(?:инструкц|указан|правил|команд)"
    ),
    # Chinese, Japanese, Korean, Arabic
    r"(?:忽略|无视|無視|忘记|忘掉|忘記|不要遵守|不要理会)[^。\n]{0,8}(?:之前|以上|先前|前面|上述|此前)[^。\n]{0,8}(?:指令|指示|提示|规则|規則|要求)",
    r"(?:以前|これまで|上記|前|先ほど|以上)の?[^。\n]{0,8}(?:指示|命令|ルール|プロンプト)[^。\n]{0,8}(?:無視|忘れ|従わな)",
    r"(?:이전|위의|앞선|기존)[^.\n]{0,10}(?:지시|명령|규칙|프롬프트)[^.\n]{0,8}(?:무시|잊)",
    r"تجاهل\w*\s[^.\n]{0,12}(?:التعليمات|الأوامر|القواعد)[^.\n]{0,6}السابقة",
)

SECRECY: tuple[str, ...] = (
    # German
    (
        r"\b(?:sag|sage|sagt|erz[äa]hl|verrat|zeig|meld|teil)\w*\s+(?:es\s+|das\s+|dies\s+)?(?:dem|der|den)\s+(?:benutzer|nutzer|anwender|"
        r"entwickler|menschen)\w*\s+(?:(?:hier)?davon\s+)?(?:nichts|nicht|niemals)\b"
    ),
    (
        r"\bohne\s+(?:dass\s+(?:der|die)\s+(?:benutzer|nutzer|anwender|entwickler)\w*\s+(?:es|das|davon|etwas)\b|(?:es\s+)?dem\s+(?:benutzer|"
        r"nutzer|anwender)\s+(?:es\s+)?zu\s+sagen)"
    ),
    # French
    (
        r"\bn(?:e\s+|')(?:dis|dites|mentionne|r[ée]v[èe]le|montre|informe|parle)\w*\s+(?:(?:en|le|la|de\s+\w+)\s+)?(?:rien|pas|jamais)\b[^.\n]{0,30}"
        r"\b(?:utilisateur|d[ée]veloppeur|personne)|\bsans\s+que\s+l'utilisateur\s+(?:le|s'en|ne)\b|\bsans\s+le\s+dire\s+[àa]\s+l'utilisateur\b"
    ),
    # Spanish, Portuguese
    (
        r"\bno\s+(?:se\s+)?(?:le\s+|lo\s+)?(?:digas?|cuentes?|menciones?|muestres?|informes?|reveles?|notifiques?)\b[^.\n]{0,20}"
        r"\b(?:al?|a\s+l[oa]s?)\s+(?:usuari|desarrollador|nadie)"
    ),
    r"\bn[ãa]o\s+(?:diga|conte|mencione|mostre|revele|informe|avise)\b[^.\n]{0,20}\b(?:ao|aos|[àa]|o)\s+(?:usu[áa]ri|utilizador|desenvolvedor)",
    # Italian
    r"\bnon\s+(?:dir(?:e|lo)|menzionar(?:e|lo)|rivelar(?:e|lo)|mostrar(?:e|lo)|informare)\b[^.\n]{0,20}\b(?:all'|l'|agli\s+)utent",
    # Dutch, Polish
    (
        r"\b(?:zeg|vertel|meld|toon)\b[^.\n]{0,20}\bgebruikers?\b[^.\n]{0,10}\b(?:niets|niet|hierover)\b|\b(?:zeg|vertel|meld)\s+(?:hier\s*)?"
        r"(?:niets|niet)\b[^.\n]{0,20}\bgebruiker"
    ),
    r"\bnie\s+(?:m[óo]w|informuj|wspominaj|pokazuj|ujawniaj|zdradzaj)\w*\b[^.\n]{0,20}\bu[żz]ytkownik",
    # Russian
    r"\bне\s+(?:сообщай|говори|рассказывай|показывай|упоминай|раскрывай|уведомляй)\w*\s+(?:\w+\s+){0,3}(?:пользовател|разработчик)",
    # Chinese, Japanese, Korean
    r"(?:不要|别|別|请勿|不得|切勿|不能|不可)(?:告诉|告訴|告知|通知|提及|透露给|让|讓|向)[^。\n]{0,4}(?:用户|用戶|使用者|开发者|開發者)",
    r"ユーザー?に(?:は|も)?[^。\n]{0,12}(?:言わない|言うな|知らせない|知らせるな|教えない|教えるな|伝えない|伝えるな|見せない|報告しない|話さない)",
    r"사용자에게[^.\n]{0,12}(?:말하지|알리지|보여주지|언급하지)",
)

SENDING: tuple[str, ...] = (
    (
        r"\b(?:schick|send|[üu]bermittl|poste|leite)\w*\s+(?:\S+\s+){0,6}?(?:passw[öo]rt|schl[üu]ssel|zugangsdaten|geheimniss?|\.env)\S*\s+"
        r"(?:\S+\s+){0,3}?(?:an|nach|zu)\s+(?:\S+\s+)?(?:https?://|\S+@\S+\.\w)"
    ),
    (
        r"\b(?:envoie|envoyez|transmet|transmettez|publie)\w*\s+(?:\S+\s+){0,6}?(?:mots?\s+de\s+passe|cl[ée]s?|identifiants|secrets?|\.env)\S*\s+"
        r"(?:\S+\s+){0,3}?[àa]\s+(?:\S+\s+)?(?:https?://|\S+@\S+\.\w)"
    ),
    (
        r"\b(?:env[íi]a|enviar|manda|publica|envie|mande)\w*\s+(?:\S+\s+){0,6}?(?:contrase[ñn]as?|claves?|credenciales|secretos?|senhas?|credenciais|"
        r"segredos?|\.env)\S*\s+(?:\S+\s+){0,3}?(?:a|al|para|ao)\s+(?:\S+\s+)?(?:https?://|\S+@\S+\.\w)"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRule:
    """One sign: its name, what it is in words, and the wordings that show it."""

    id: str
    what: str
    patterns: tuple[str, ...]


_EARLIER = r"(?:(?:all|any|every|the|your|these|those|my|our|(?:user|person|human|owner)'s)\s+(?:of\s+)?){0,3}"
_PREVIOUS = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|initial|original|existing|former|other|system|developer|"
    r"safety|security)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules|guidelines|directives?|commands?|orders|messages?|context|policies|"
    r"constraints|restrictions|training|guardrails|programming|memories)"
)
_SETTING_ASIDE = (
    r"(?:ignore|disregard|forget|do\s+not\s+(?:follow|obey)|don't\s+(?:follow|obey)|stop\s+(?:following|obeying)|"
    r"(?:(?<![\w ])|(?<=please )|(?<=must )|(?<=should )|(?<=you )|(?<=to )|(?<=and )|(?<=then )|(?<=now ))"
    r"(?:override|overrule|bypass|discard|neglect))"
)
_PERSON = (
    r"(?:the\s+)?(?:user|users|human|humans|person|operator|"
    r"developer|developers|owner|anyone|anybody|them|reviewer|"
    r"reviewers)"
)
_SECRETS = (
    r"(?:api[\s_-]?keys?|passwords?|credentials?|secrets?|tokens?|private\s+keys?|ssh\s+keys?|environment\s+variables|"
    r"env(?:ironment)?\s+vars?|\.env\b|cookies|conversation(?:\s+history)?|chat\s+(?:history|log)|system\s+prompt|"
    r"~/\.ssh|id_rsa|\.aws/credentials|source\s+code|memories)"
)
_SEND = (
    r"(?:send|post|upload|exfiltrate|forward|transmit|leak|e-?mail|submit|append|copy|"
    r"reveal|disclose)"
)

RULES: tuple[InjectionRule, ...] = (
    InjectionRule(
        id="override",
        what="sets other instructions aside",
        patterns=(
            (
                rf"\byour\s+{_PREVIOUS}\s+{_ORDERS}\s+(?:have\s+been|has\s+been|are|were|is|was)\s+(?:now\s+)?"
                r"(?:revoked|void|cancelled|canceled|suspended|lifted|overridden|no\s+longer)\b"
            ),
            rf"\b{_SETTING_ASIDE}\s+(?:all\s+of\s+)?your\s+(?:own\s+)?{_ORDERS}\b",
            (
                rf"\b{_SETTING_ASIDE}\s+(?:all|any|every|each|the)\s+(?:of\s+)?(?:the\s+)?{_ORDERS}\s+"
                r"(?:(?:that|which)\s+)?(?:(?:was|were|have\s+been|you\s+(?:were|have\s+been))\s+)?"
                r"(?:given|told|received|above|before|earlier|previously)\b"
            ),
            (
                rf"\b{_SETTING_ASIDE}\s+(?:whatever|what|everything|anything)\s+{_PERSON}\s+"
                r"(?:says?|said|asks?|asked|wants?|tells?|told|writes?)\b"
            ),
            (
                rf"\b(?:whatever|no\s+matter\s+what)\s+{_PERSON}\s+(?:asks?|says?|wants?|writes?)\b[^.\n]{{0,20}}"
                r"\b(?:answer|reply|respond|say|always|run|do)\b"
            ),
            (rf"\b{_SETTING_ASIDE}\s+{_EARLIER}{_PREVIOUS}\s+(?:\w+\s+){{0,2}}?{_ORDERS}\b"),
            (
                rf"\b{_SETTING_ASIDE}\s+(?:all|any|everything|every)\s+(?:of\s+)?(?:your|"
                rf"the|other|these)\s+{_ORDERS}\b"
            ),
            (
                r"\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+(?:that\s+)?(?:(?:you|"
                r"they)\s+(?:were|was|have\s+been|are)\s+(?:told|given|"
                r"instructed|asked)|above|before\s+this|(?:came|was\s+said|"
                r"was\s+written)\s+(?:before|above|earlier)|(?:else\s+)?you\s+(?:know|"
                r"learned|have\s+learned))\b"
            ),
            (
                rf"\b(?:these|this|the\s+following)\s+(?:new\s+)?{_ORDERS}\s+(?:override|"
                r"overrides|supersedes?|replaces?|takes?\s+(?:precedence|"
                rf"priority)\s+over)\s+{_EARLIER}(?:{_PREVIOUS}\s+)?(?:\w+\s+){{0,2}}?{_ORDERS}\b"
            ),
            (
                r"\b(?:ignore|disregard|forget)\s+(?:all\s+(?:of\s+)?)?(?:the|everything)\s+above\b,?\s+(?:and|but)\s+"
                r"(?:instead|only|just|do|answer|reply|respond|follow|obey|print|run|say)\b"
            ),
            (
                rf"\b{_SETTING_ASIDE}\s+(?:any|all|every|each)\s+{_ORDERS}\s+(?:that|which)\s+"
                r"(?:contradicts?|conflicts?\s+with|differs?\s+from|says?\s+otherwise)\b"
            ),
            (
                r"\boverrid(?:es?|ing)\s+(?:all|any|every)\s+(?:other|previous|earlier|prior)s?\b[^.\n]{0,60}"
                r"\b(?:system\s+prompt|instructions?)\b"
            ),
            *OVERRIDE,
        ),
    ),
    InjectionRule(
        id="role",
        what="gives the reader another role",
        patterns=(
            (
                r"\b(?:act|behave|respond|answer)\s+as\b[^.\n]{0,40}\b(?:with\s+no|without\s+any|free\s+of\s+all)\s+"
                r"(?:restrictions|limits|limitations|filters|guardrails|safety)\b"
            ),
            (
                r"\b(?:must|will|should|shall)\s+(?:now\s+)?(?:behave|act|respond|answer)\s+as\s+(?:an?\s+|the\s+)?"
                r"(?:unrestricted|unfiltered|uncensored|jailbroken|evil|root|admin|dan)\b"
            ),
            (
                r"\b(?:from\s+now\s+on,?\s+)?you\s+(?:are|will\s+be|must\s+act\s+as|"
                r"will\s+act\s+as)\s+(?:now\s+)?(?:(?:in\s+)?(?:developer|"
                r"debug|god|admin|root|dan|jailbreak|unrestricted|maintenance)\s+mode|"
                r"(?:an?\s+|the\s+)?(?:unrestricted|unfiltered|uncensored|"
                r"jailbroken|evil)\s+\w+|dan\b|no\s+longer\s+(?:bound|"
                r"restricted|limited|an?\s+(?:ai|assistant)))"
            ),
            (
                r"\b(?:pretend(?:\s+that)?|(?:act|behave|respond)\s+(?:as\s+(?:if|though)|"
                r"like))\s+(?:you\s+(?:are|were|have|had)\s+(?:no|not\s+bound|"
                r"without|free)|there\s+(?:are|were)\s+no)\s*(?:\w+\s+){0,3}(?:restrictions?|"
                r"rules|guidelines|limits|limitations|filters?|policies|"
                r"safety)"
            ),
            (
                r"\bfrom\s+now\s+on,?\s+you\s+(?:are|will\s+(?:be|obey|"
                r"only)|must\s+obey|answer\s+only\s+to|work\s+for)\b"
            ),
        ),
    ),
    InjectionRule(
        id="frame",
        what="passes for the frame around it",
        patterns=(
            (
                r"(?-i:\bEND\s+OF\s+(?:THE\s+)?(?:RETRIEVED|RECALLED|QUOTED|USER|TOOL|UNTRUSTED|EXTERNAL)\s+(?:FACTS?|NOTES?|"
                r"DATA|INPUT|RESULTS?|OUTPUT|TEXT|CONTENT|MEMORIES)\b)"
            ),
            (
                r"</(?:context|documents?|data|facts|results?|tool_results?|untrusted|quote)>\s{0,4}"
                r"(?:human|user|system|assistant|developer)\s*:"
            ),
            (
                r"[\"']role[\"']\s*:\s*[\"'](?:system|developer)[\"']\s*,\s*[\"']content[\"']\s*:\s*[\"'][^\"'\n]{0,80}\b"
                r"(?:ignore|obey|only\s+to|from\s+now\s+on|must\s+(?:not|never|always))\b"
            ),
            r"^[ \t]{0,8}\[[ ]?system[ ]?\][ \t]{1,4}(?:you|ignore|obey|new|do|from)\b",
            (
                r"<\|(?:im_start|im_end|system|user|assistant|endoftext|"
                r"eot_id|start_header_id|end_header_id)\|>|\[/?INST\]|"
                r"<</?SYS>>|</?memories\s+[0-9a-f]{16}>|</memories>|^[ \t]{0,8}</?(?:system|"
                r"assistant|developer|system[-_]?(?:prompt|reminder|message|"
                r"instructions?))>|^[ \t]{0,8}#{0,6}[ \t]{0,8}(?:new\s+)?system\s+(?:prompt|"
                r"message|instructions?|override)[ \t]{0,8}:|^[ \t]{0,8}(?:\[?system\]?|"
                r"developer)[ \t]{0,8}:\s+(?:you\b|override\b|ignore\b|from\s+now\b|new\b)|"
                r"\bBEGIN\s+(?:SYSTEM|ADMIN|NEW)\s+(?:PROMPT|INSTRUCTIONS?)\b|"
                r"\bEND\s+OF\s+(?:USER\s+INPUT|MEMORIES|CONTEXT|PROMPT|"
                r"DOCUMENT|QUOTED\s+DATA)\b"
            ),
        ),
    ),
    InjectionRule(
        id="secrecy",
        what="asks to be kept from the person",
        patterns=(
            (
                rf"\bif\s+{_PERSON}\s+asks?\s+(?:about|for|why|whether|of)\s+(?:this|these|that)\s+"
                r"(?:memory|memories|note|rule|instructions?|message|step|action|change)s?\b[^.\n]{0,30}"
                r"\b(?:say|deny|claim|pretend|lie|answer)\b"
            ),
            rf"\bhid(?:e|ing)\s+from\s+{_PERSON}\s+(?:that|what)\s+you\b",
            (
                r"\b(?:do\s+not|don't|dont|never|must\s+not|without|avoid)\s+(?:ever\s+)?(?:tell(?:ing)?|"
                r"inform(?:ing)?|notify(?:ing)?|mention(?:ing)?(?:\s+(?:this|"
                r"it|that))?\s+to|reveal(?:ing)?(?:\s+(?:this|it|that))?\s+to|"
                r"show(?:ing)?(?:\s+(?:this|it|that))?\s+to|alert(?:ing)?|"
                rf"disclos(?:e|ing)(?:\s+(?:this|it|that))?\s+to|let(?:ting)?)\s+"
                rf"(?!(?:user|human|developer)s\s+(?:about|of)\b){_PERSON}\b(?:\s+(?:know|"
                r"about|of|that|see|notice)|\s*[.,;:!]|\s*$|\s+and\b)"
            ),
            (
                r"\b(?:do\s+not|don't|never)\s+(?:mention|reveal|disclose|"
                r"acknowledge|repeat|show)\s+(?:the\s+existence\s+of\s+)?(?:this|"
                r"these|that)\s+(?:instructions?|message|memory|memories|"
                r"note|rule|prompt|directive|text|step|action)s?"
                r"(?:\s*(?:[.,;:!]|$)|\s+(?:to|in|when|or|and|at|anywhere|even|unless)\b)"
            ),
            (
                rf"\b(?:keep|hide|conceal)\s+(?:this|these|that)(?:\s+\w+){{0,3}}\s+(?:secret\s+|"
                rf"hidden\s+)?from\s+{_PERSON}\b"
            ),
            *SECRECY,
        ),
    ),
    InjectionRule(
        id="sending",
        what="has something secret sent away",
        patterns=(
            (
                rf"\b{_SEND}\b(?:\s+\S+){{0,8}}?\s+{_SECRETS}\S*(?:\s+\S+){{0,8}}?\s+(?:to|"
                rf"into|at|as|via|with)\s+(?:\S+\s+){{0,3}}?(?:https?://|"
                r"ftp://|\S+@\S+\.\w)"
            ),
            (
                rf"\b(?:include|embed|put|append|add|encode)\b(?:\s+\S+){{0,6}}?\s+{_SECRETS}(?:\s+(?!never\b|not\b)\S+){{0,6}}?"
                r"\s+(?:in|into|to|as)\s+(?:the\s+|a\s+|an\s+|every\s+|"
                r"each\s+|your\s+)?(?:next\s+)?(?:url|link|image|query|commit\s+message|pull\s+request|request|"
                r"search|address)\b"
            ),
            (
                r"\b(?:read|open|cat|print|take)\s+\S{0,60}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.netrc|"
                r"/etc/passwd)\S{0,60}(?:\s+\S+){0,3}?\s+(?:include|put|add|send|post|append|embed|paste|write|mail)\b"
            ),
            (
                r"\b(?:print|reveal|output|repeat|show|leak|dump)\s+(?:me\s+)?(?:your|"
                r"the)\s+(?:full\s+|entire\s+|hidden\s+|complete\s+|initial\s+)?(?:system\s+prompt|"
                r"hidden\s+instructions|initial\s+instructions)\b"
                r"(?!\s+(?:length|size|tokens?|budget|template|file|version)\b)"
            ),
            (
                r"!\[[^\]\n]{0,200}\]\([ ]{0,4}(?:https?:)?//[^)\s?&]{0,200}[?&][^)\s]{0,200}?(?:\{|"
                r"\$|%7B|<|=\s*(?:data|secret|key|token|prompt|history))"
            ),
            (
                r"\b(?:curl|wget|nc|ncat)\b[^\n]{0,120}(?:\$\(\s*(?:cat|"
                r"env|printenv)|(?:--data(?:-binary|-raw|-urlencode)?|"
                r"-d|-F|-T|--upload-file|--post-file)[ =]?@?\S{0,80}(?:\.env|"
                r"\.ssh|id_rsa|credentials|\.aws|\.netrc|/etc/passwd|\$[A-Z_]*(?:KEY|"
                r"TOKEN|SECRET|PASS)))"
            ),
            *SENDING,
        ),
    ),
    InjectionRule(
        id="running",
        what="has foreign code run unseen",
        patterns=(
            (
                r"\b(?:when|if|once|whenever|after|as\s+soon\s+as)\s+you\s+(?:read|see|load|recall|find)\s+this"
                r"(?:\s+(?:note|memory|message|text|instruction|rule|file))?\s*[,:;][^\n]{0,60}"
                r"\b(?:run|execute|call|send|delete|reply|say|answer|ignore|open|fetch|download|obey|stop)\b"
            ),
            (
                r"\b(?:before|after)\s+(?:every|each|any|answering|doing|"
                r"you)\b[^.\n]{0,80}?\b(?:run|execute|pipe|call)\b[^\n]{0,80}(?:(?:curl|"
                r"wget)\b[^\n|]{0,160}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|"
                r"base64\s+(?:-d|--decode)[^\n|]{0,80}\|\s*(?:ba|z|da)?sh\b)"
            ),
            (
                r"\b(?:always|whenever|when\s+asked)\b[^.\n]{0,80}\b(?:recommend|suggest|tell)[^.\n]{0,60}"
                r"\b(?:curl|wget)\b[^\n|]{0,160}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
            ),
            (
                r"\b(?:silently|secretly|quietly|in\s+the\s+background\s+without)\b[^.\n]{0,40}\b(?:run|"
                r"execute|install|append|include|e-?mail|copy|fetch|post|forward|commit|download|delete|send|upload|modify|change|"
                r"disable|add|push)\b"
            ),
            (
                r"base64\s+(?:-d|--decode|-D)\b[^\n]{0,60}\|\s*(?:sudo\s+)?(?:ba|"
                r"z|da)?sh\b|\beval\s*[(\"'`$ ]+\s*(?:base64|atob|\$\(\s*(?:curl|"
                r"wget|base64|echo\s+[A-Za-z0-9+/=]{16}))"
            ),
        ),
    ),
    InjectionRule(
        id="permission",
        what="takes the person's say away",
        patterns=(
            (
                r"\b(?:always|automatically)\s+(?:approve|accept|allow|"
                r"grant|confirm)\s+(?:all|any|every|each)\s+(?:\w+\s+){0,3}(?:tool|"
                r"permission|command|request|action|prompt|confirmation)s?\b(?:\s+\w+){0,6}?\s+(?:without|"
                r"even\s+if|regardless)"
            ),
            (
                r"\b(?:do\s+not|don't|never|without)\s+(?:ask|asking|wait|"
                r"waiting)\s+(?:the\s+user\s+)?(?:for\s+)?(?:any\s+)?(?:permission|"
                r"confirmation|approval|consent)\b[^.\n]{0,60}\b(?:delet|"
                r"remov|push|deploy|send|upload|transfer|drop|overwrit|"
                r"disabl|rm\s)"
            ),
            (
                r"\bthe\s+(?:user|person|operator|owner|human)\s+has\s+(?:already\s+)?(?:granted|given|authori[sz]ed)\s+"
                r"(?:you\s+)?(?:permission|consent|authori[sz]ation)\b[^.\n]{0,80}\bwithout\s+"
                r"(?:asking|confirm|approval|review)"
            ),
            (r"--dangerously-skip-permissions\b|\bbypassPermissions\b"),
        ),
    ),
    InjectionRule(
        id="trust",
        what="vouches for itself",
        patterns=(
            (
                r"\bthis\s+(?:memory|note|rule|message|instruction|text|"
                r"convention)\s+(?:is|was|has\s+been)\s+(?:(?:already|"
                r"fully)\s+)?(?:verified|approved|authori[sz]ed|signed\s+off|"
                r"trusted|reviewed)\s+by\s+(?:the\s+)?(?:system|admin(?:istrator)?|"
                r"anthropic|openai|google|developers?|security\s+team|"
                r"root)\b"
            ),
            (
                r"\b(?:treat|regard|consider)\s+(?:this|the\s+following|"
                r"these)\s+(?:\w+\s+)?as\s+(?:an?\s+|the\s+)?(?:system|"
                r"developer|admin|highest[- ]priority|trusted|root)\s*(?:prompt|"
                r"message|instruction|level|command)?s?\b"
            ),
        ),
    ),
    InjectionRule(id="spreading", what="has itself carried on", patterns=()),
)
COMPILED = tuple(
    (rule, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for rule in RULES for pattern in rule.patterns
)
"""Each wording with its sign."""
