"""Answers of members that say in their own words, in several languages, how their step ended."""

PARTIAL = (
    "The fee of 2018 is 12 euros [1].\n\nStill missing: the fee of 2019.",
    "Partly done: the prices of two shops are below, the third asks for a login.\n\n- Shop A: 3\n- Shop B: 4",
    "Incomplete: the third table could not be read.\n\nThe first two tables have 40 rows [1].",
    "Unvollständig: Die Gebühr von 2019 fehlt.\n\nDie Gebühr von 2018 beträgt 12 Euro [1].",
    "Le tarif de 2018 est de 12 euros [1].\n\nPARTIEL : le tarif de 2019",
    "TEILWEISE: Die Preise von Laden C waren nicht abrufbar.\n\nLaden A: 3 Euro.",
    "2018年的费用是12元[1]。\n\n部分完成：2019年的费用没有找到",
    "I found everything except the fee of 2019.\n\nThe fee of 2018 is 12 euros [1].",
    "The fee of 2018 is 12 euros [1].\n\n**Still missing**\n\n- the fee of 2019\n- its date",
    "# Fees\n\nPartially completed: the fee of 2019 is behind a login.\n\nThe fee of 2018 is 12 euros.",
    "La tarifa de 2018 es de 12 euros [1].\n\nParcial: falta la tarifa de 2019",
    "La tariffa del 2018 è di 12 euro [1].\n\n**Manca ancora:** la tariffa del 2019",
    "A taxa de 2018 é de 12 euros [1].\n\nPARCIALMENTE CONCLUÍDO: não encontrei a taxa de 2019",
    "2018年の料金は12ユーロです[1]。\n\n一部完了：2019年の料金は見つかりませんでした",
)
FAILED = (
    "SCHRITT FEHLGESCHLAGEN: Die Seite verlangt eine Anmeldung.",
    "ÉCHEC DE L'ÉTAPE : la page demande une connexion.",
    "❌ **STEP FAILED:** the page asks for a login.",
    "PASO FALLIDO: la página pide iniciar sesión.",
    "步骤失败：页面需要登录。",
)
DONE = (
    "Archives of the town:\n\n- Held: the census of 1902\n- Missing: the 1912 census\n- Held: that of 1922",
    "Incomplete dominance: both alleles show. Pink flowers come from red and white parents [1].",
    "| Column | Missing |\n|---|---|\n| age | 3 |\n| name | 0 |",
    "Missing: 3 of 20 values are empty.",
    "Everything except water shrinks when it freezes [1].",
    "A partial eclipse is seen in Rome, a total one in Madrid [1].",
    "Der Film „Was fehlt“ lief 2019. Teilweise war er ausverkauft [1].",
    "Kinds of eclipses:\n\n- Partial: a part of the Sun is hidden\n- Total: all of it is hidden",
    "Rows: 20\nColumns: 4\nMissing: 3",
    "# Data\n\n## Duplicates\n\n4 rows.\n\n## Missing\n\n3 values in `age`.",
    "The build log says: step failed: lint. The cause is a tab in line 3.",
    "L'échec de l'étape 3 du Tour vient de la neige [1].",
    "部分城市的气温超过30度[1]。",
    "Falta de agua: el embalse está al 12 % [1].",
    "The museum is closed on Mondays. What is missing from its collection is known since 1911 [1].",
)
