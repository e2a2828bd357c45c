"""How Polish refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

POLISH = Language(
    code="pl",
    hints="nie|brak|brakuje|odmawiam|odmówić|muszę|mało|niewystarczające|nieetyczne",
    declines=(
        (
            "nie (?:<little> )*(?:moge|mozemy|jestem w stanie|jestesmy w stanie|bede|wolno mi|"
            r"jestem uprawnion\w+|jestem upowaznion\w+|chce)(?: .{0,60}?)? <help>"
        ),
        (
            "(?:przykro mi|przepraszam|niestety|wybacz),? (?:ale )?(?:<little> )*nie (?:moge|mozemy|"
            "jestem w stanie|bede)"
        ),
        r"(?:musze|odmawiam)(?: \w+){0,2}? ?(?:odmowic|udzielenia|pomocy|odpowiedzi)",
        (
            "(?:nie jest|byloby) (?:etyczne|wlasciwe|stosowne|nieetyczne|"
            r"odpowiednie)(?: .{0,30}?)? (?:udziel\w+|podaw\w+|pomag\w+|dostarcz\w+)"
        ),
    ),
    lacks=(
        (
            r"nie (?:<little> )*(?:wiem|mam pojecia|znam odpowiedzi|posiadam|dysponuj\w+|znalazlem|znalazlam|"
            "znaleziono|znaleziono|widze|znalezlismy)"
        ),
        r"nie mam (?:<little> |\w+ ){0,3}?<info>",
        "(?:mam|mamy) za malo <info>",
        (
            "nie (?:<little> )*(?:moge|mozemy|jestem w stanie|udalo (?:mi |nam )?sie|potrafie|moglem|moglam|"
            r"mozna|da sie|sposob) (?:<little> |na to |\w+ ){0,4}?(?:znalezc|odpowiedziec|okreslic|ustalic|"
            "stwierdzic|powiedziec|potwierdzic|odnalezc|wywnioskowac|udzielic odpowiedzi)"
        ),
        (
            "(?:w|we|z|na podstawie|wedlug) (?:<little> )*<sources>(?: .{0,90}?)? (?:nie|brak|"
            r"brakuje)(?: .{0,60}?)? ?(?:<info>|wspomn\w+|wymieni\w+|podan\w*|zawar\w+|znalaz\w+|znajduj\w+|"
            r"okreslon\w*|odpowiedz\w*|wynika|ustalic|opisan\w*|jest|ma\b)"
        ),
        ("<sources> (?:<little> )*(?:nie <say>|<topic> .{1,90}? (?:i|ale|lecz|a) (?:<little> )*nie <say>)"),
        r"<sources> (?:nic|niczego) (?:\w+ ){0,3}?nie (?:mowi\w*|wspomin\w+|podaj\w+)",
        (
            r"nie (?:jest|zosta\w+|sa|ma|zawart\w*|wspomn\w+|znajduj\w+ sie)(?: .{0,60}?)? (?:w|we|z|"
            "na podstawie) <sources>"
        ),
        (
            r"(?:brak|brakuje|nie ma(?! dostepu)|nie znaleziono|niewystarczajace) (?:<little> |\w+ "
            "){0,2}?(?:<info>|wynikow|"
            "wzmianki|dokumentow)"
        ),
        (
            "(?:na )?(?:to |te |twoje |panskie )?pytani[ea] (?:.{0,40}? )?(?:nie (?:mozna|da sie|moge|sposob|"
            "ma odpowiedzi)|pozostaje bez)"
        ),
        "odpowiedz (?:na .{0,60}? )?nie (?:znajduje|jest|zostala|wynika|ma)",
        (
            r"<info>(?: .{0,60}?)? nie (?:jest|sa|zostal\w*) (?:dostepn\w+|podan\w+|zawart\w+|uwzgl\w+|"
            r"wymien\w+|wskazan\w+)"
        ),
    ),
    turns="ale|jednak|jednakze|natomiast|lecz|mimo to|chociaz|choc|niemniej",
    lead="(?:i|wiec|zatem|dlatego|wtedy|byc moze|w takim przypadku),? ",
    idle=(
        "przykro mi|przepraszam|niestety|wybacz|prosze|dziekuj",
        "(?:jesli|jezeli|gdyby) (?:masz|chcesz|potrzebujesz|pan|pani|mozesz|podasz|to|cos|sa)",
        (
            "(?:moge|mozemy|chetnie|polecam|zalecam|sugeruje|radze|postaram) (?:jedynie |tylko |natomiast |ci |"
            r"panu |pani |pomoc|opowiedziec|zaproponowac|udzielic|odpowiem|pomog\w+|sprawdz\w+|skonsult\w+|"
            r"skontakt\w+|sie|zapoznac|zwroc\w+)"
        ),
        (
            "(?:skontaktuj|sprawdz|skonsultuj|zapytaj|sprobuj|podaj|zadaj|zwroc sie|daj znac|doprecyzuj|"
            "udostepnij|warto)"
        ),
        "(?:mozesz|mozna|powinienes|powinnas|nalezy|najlepiej|moze pan|moze pani)",
        "(?:czy (?:moge|jest|chcesz|masz|moglbys|mozesz)|w czym)",
        (
            r"<sources> (?:\w+ )?(?:dotycz\w+|opisuj\w+|omawia\w*|skupia\w*|koncentruj\w+|zawier\w+ (?:tylko|"
            r"jedynie)|traktuj\w+|poswiecon\w+|odnos\w+|porusza\w*)"
        ),
        r"(?:on|ona|one|ono|tam) (?:dotycz\w+|opisuj\w+|omawia\w*|zawier\w+ tylko)",
        r"(?:dlatego|zatem|wiec|w zwiazku z tym)\b.*(?:nie |brak)",
        "(?:na podstawie|wedlug|zgodnie z|w oparciu o) .{0,60}$",
        (
            r"jako (?:ai|model|sztuczna|asystent)|(?:wiecej|dodatkow|szczegolow\w+) (?:informacj|szczegol)|"
            "rozumiem|oczywiscie|witaj|dzien dobry"
        ),
    ),
    moral=(
        (
            r"nielegaln|niebezpieczn|nieetyczn|szkod|przemoc|praw[oa]\b|wazne|bezpieczen|szacun|dyskrymin|pomoc|"
            "lekarz|zabronion|zamiast|odpowiedzialn|przestepstw|specjalist"
        ),
    ),
    before="(?:jesli|jezeli|gdy|kiedy|gdyby)(?: [^,;]{0,40})?|czy|mowi|powiedzial|odpowiada",
    concedes="chociaż|choć|mimo że",
    whole=(
        "nie wiem|nie mam pojęcia|brak odpowiedzi|brak informacji|brak danych|nie podano|nie określono|"
        "nie znaleziono|nie wspomniano|brak w kontekście|nie ma w kontekście|brak wyników|"
        "niewystarczające informacje|za mało informacji|nie dotyczy kontekstu|brak informacji w kontekście|"
        "nie ma odpowiedzi|nie ma informacji|trudno powiedzieć"
    ),
    words={
        "little": (
            "(?:niestety|tez|obecnie|rowniez|jednak|w tej chwili|po prostu|zatem|ci|panu|pani|wiec|tutaj|tu|"
            "tego|wyraznie|bezposrednio|konkretnie|na ten temat|o tym|w tym|na to)"
        ),
        "sources": (
            r"(?:(?:tym|tych|ten|te|ta|tej|dany|danym|danych|podan\w+|dostarczon\w+|dostepn\w+|przedstawion\w+|"
            r"powyzsz\w+|moich|moim|naszych|udostepnion\w+|przekazan\w+|zalaczon\w+|pobran\w+|znalezion\w+|"
            r"zadny\w*|wskazan\w+) )*(?:kontek\w+|dokument\w*|tekst\w*|tekscie|zrod\w+|material\w*|fragment\w*|"
            r"artykul\w*|informacj\w+|baz\w+ wiedzy|wynik\w+ wyszukiwania|plik\w*|dokumentacj\w+|"
            r"ustep\w*)(?: (?:podan\w+|dostarczon\w+|udostepnion\w+))?"
        ),
        "say": (
            r"(?:zawier\w+|wspomin\w+|podaj\w+|dostarcz\w+|okresl\w+|mowi\w*|odpowiad\w+|opisuj\w+|wyjasni\w+|"
            r"precyzuj\w+|obejmuj\w+|informuj\w+|odnos\w+|przedstawi\w+|poruszaj\w*|porusza)"
        ),
        "topic": (
            r"(?:dotycz\w+|traktuj\w+|poswiecon\w+|skupia\w*|koncentruj\w+|(?:opisuj\w+|omawia\w*|zawier\w+|"
            r"obejmuj\w+) (?:tylko|jedynie|wylacznie))"
        ),
        "info": (
            r"(?:informacj\w+|danych|odpowiedzi|wiedzy|szczegolow|dostepu|wzmianki|wystarczajac\w+|kontekstu|"
            "wskazowek)"
        ),
        "help": (
            r"(?:pomoc|pomagac|odpowiedziec|udziel\w+|dostarcz\w+|podac|podawac|zapewnic|spelnic|doradz\w+|"
            r"omawiac|wykonac|napisac|stworzyc|przekazac|poleca\w*|zalecac|komentowac|wspierac|zrobic|"
            "powiedziec|tego)"
        ),
    },
)
