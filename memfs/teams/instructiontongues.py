"""Orders in other languages than English: the wordings by which they set others aside, or keep the person out.

Owns the wordings alone, by sign; ``memfs.teams.instructionrules`` joins them with the English ones. Words that bend are
given by their stems, and what may stand between them is bounded.
"""

from __future__ import annotations

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
