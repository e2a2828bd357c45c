"""How Turkish refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

TURKISH = Language(
    code="tr",
    hints_within=(
        "yok|degil|maalesef|uzgunum|amiyor|emiyor|amam|emem|bilmiyor|bulunmu|mıyor|miyor|muyor|amad|emed|"
        "yetersiz|mem |mam |amaz|emez|ozur|reddet|mamis|memis|mamak|memek|imkan"
    ),
    declines=(
        (
            r"(?:\w+ ){0,3}?(?:yardimci ol|yardim ed|yardim sagl|cevap ver|yanit ver|bilgi ver|tavsiye ver|"
            "tavsiyede bulun|oneride bulun|saglay|sun|paylas|yap|yerine getir|destekley|tartis|yorum yap|"
            r"olustur|yaz|acikla|yanitlay|cevaplay|oner|soyley|onayla|karsilay)\w*(?:amam|emem|amiyorum|"
            r"emiyorum|amayiz|emeyiz|amiyoruz|emiyoruz|mam mumkun degil|mem mumkun degil|am\b|em\b|amayacagim|"
            "emeyecegim|mayacagim|meyecegim)"
        ),
        (
            "(?:uzgunum|maalesef|ne yazik ki|ozur dilerim|kusura bakmayin),? (?:ama |"
            r"ancak )?(?:\w+ ){0,8}?\w+(?:amam|emem|amiyorum|emiyorum|amayiz|emeyiz|amiyoruz|emiyoruz|"
            "amayacagim|emeyecegim)"
        ),
        r"(?:istegi\w*|talebi\w*|bunu) (?:\w+ ){0,2}?(?:reddetmek|reddediyorum|geri cevir\w+)",
        r"(?:uygun|etik|dogru) (?:degil|olmaz)\w*(?: .{0,20})?$",
    ),
    lacks=(
        (
            "(?:bunu |cevabini |yanitini |tam olarak |bu konuda )?(?:bilmiyorum|bilmiyoruz|bilmem|bilgim yok|"
            "fikrim yok|bilgiye sahip degilim|emin degilim(?=[.]|$))"
        ),
        (
            r"<sources>(?:\w*)(?: .{0,90}?)?<not_yours> (?:<info>\w*<not_yours> )?(?:yok|bulunmuyor|"
            "bulunmamakta|bulunmamis|"
            "yer almiyor|yer almamakta|belirtilmemis|belirtilmiyor|bahsedilmiyor|bahsedilmemis|icermiyor|"
            "icermemekte|gecmiyor|verilmemis|verilmiyor|aciklanmamis|aciklanmiyor|deginilmemis|deginmiyor|"
            "bahsetmiyor|soylemiyor|saglamiyor|sunmuyor|vermiyor|belirtmiyor|yeterli degil|yanitlamiyor|"
            "mevcut degil|icermez|bulunamadi|yer verilmemis|anlasilmiyor|cevaplamiyor|aciklamiyor|"
            "tanimlanmamis|rastlamadim|bulamadim|bulamiyorum|yanitlanamaz|cevaplanamaz|belirlenemiyor|"
            r"belirlenemez)\w*<told>"
        ),
        (
            r"<info>\w*<not_yours> (?:\w+<not_yours> ){0,3}?(?:yok|bulunmuyor|bulunamadi|bulunmamakta|"
            "bulamadim|bulamadik|bulamiyorum|"
            "yetersiz|mevcut degil|verilmemis|yer almiyor|sahip degilim|sahip degiliz|erisemiyorum|"
            r"erisimim yok|belirtilmemis)\w*<told>"
        ),
        (
            r"(?:cevap|yanit)\w* (?:\w+ ){0,4}?(?:bulamadim|bulamadik|bulamiyorum|bulunamadi|veremiyorum|"
            r"veremem|verilemez|verilemiyor|yer almiyor)\w*<told>"
        ),
        (
            r"(?:bu |sorunuz\w*|soru\w* )(?:\w+ ){0,4}?(?:yanitlanamaz|cevaplanamaz|yanitlanamiyor|"
            "cevaplanamiyor|yanitlayamam|cevaplayamam|yanitlayamiyorum|cevaplayamiyorum|"
            r"yanitlamak mumkun degil|cevaplamak mumkun degil)\w*<told>"
        ),
        (
            "(?:belirleyemiyorum|belirleyemem|bulamadim|bulamiyorum|tespit edemiyorum|soyleyemem|"
            "soyleyemiyorum|dogrulayamiyorum|yanitlayamiyorum|cevaplayamiyorum|belirlemek mumkun degil|"
            r"soylemek mumkun degil|tespit edilemiyor)\w*<told>"
        ),
    ),
    turns="ama|ancak|fakat|yine de|bununla birlikte|oysa|buna ragmen|lakin|ne var ki",
    idle_within=(
        "uzgunum|maalesef|ne yazik|ozur|kusura|tesekkur|pisman",
        "lutfen",
        "(?:isterseniz|istersen|dilerseniz|gerekirse|varsa|olursa|verirseniz|ihtiyaciniz)",
        (
            "(?:yardimci olabilirim|yardim edebilirim|tavsiye ederim|oneririm|oneriyorum|memnuniyetle|"
            r"bilgi verebilirim|verebilirim|olmaktan mutluluk|soyleyebilirim\b(?! ki)|sunabilirim|anlatabilirim)"
        ),
        r"\w+(?:abilirsin|ebilirsin|malisin|melisin)(?:iz)?\b",
        (
            r"(?:danisin|basvurun|deneyin|kontrol edin|iletisime gec|sorun\b|arayin|bakin\b|paylasin|belirtin|"
            "bildirin)"
        ),
        r"(?:misiniz|musunuz|mi\b|mu\b|ister misin)\W*$",
        (
            r"<sources>\w*(?: .{0,50}?)? (?:hakkinda|ilgili|ele al\w+|odaklan\w+|anlat\w+|konu al\w+|acikliyor|"
            "yalnizca|sadece)"
        ),
        "^(?:bu nedenle|dolayisiyla|bu yuzden|bu sebeple)",
        r"(?:gore|dayanarak)\W*$",
        "yapay zeka|dil modeli|daha fazla bilgi|anliyorum|merhaba|elbette|tabii",
    ),
    moral=(
        (
            "yasa disi|tehlikeli|etik|zarar|siddet|yasal|onemli|guvenli|saygi|ayrimci|yardim|doktor|yasak|"
            "yerine|sorumlu|suc|uzman"
        ),
    ),
    before="eger",
    behind=" (?:zaman|durum|takdirde|surece|halde)",
    whole=(
        "bilmiyorum|bilmiyoruz|bunu bilmiyorum|cevap yok|yanıt yok|bilgi yok|bilgim yok|hiçbir fikrim yok|"
        "fikrim yok|belirtilmemiş|belirtilmiyor|bahsedilmiyor|bağlamda yok|bulunamadı|bilgi bulunamadı|"
        "mevcut değil|yeterli bilgi yok|yetersiz bilgi|sonuç bulunamadı|sonuç yok|cevaplanamaz|yanıtlanamaz|"
        "cevap bulunamadı|yanıt bulunamadı|metinde yok|belgede yok|bu konuda bilgi yok|emin değilim|"
        "cevap veremem|söyleyemem"
    ),
    words={
        "sources": (
            "(?:(?:bu|verilen|saglanan|sunulan|mevcut|elimdeki|elimizdeki|eldeki|yukaridaki|paylasilan|ilgili|"
            "saglanmis|erisilen|bulunan|hicbir) )*(?:baglam|belge|metin|metn|metinde|makale|kaynak|kaynag|"
            "dokuman|pasaj|parca|icerik|icerig|bilgiler|arama sonuclari|veri taban|veriler|dosya|materyal|"
            r"bolum|kayit|alinti)\w*"
        ),
        # What ends like this is a case: when, if.
        "told": "(?<!s[ae])(?<![dt][iu]g[iu]nd[ae])",
        "not_yours": "(?<!n[iu]z)(?<!erisimi)",  # your access, their access
        "info": "(?:bilgi|veri|cevap|yanit|ayrinti|detay|aciklama|ifade|sonuc|kayit|erisim|dokuman)",
    },
)
