"""Our leak detectors: what they see, what they leave alone, and that their work is bounded."""

from __future__ import annotations

import re
import string
import tomllib
import warnings
from contextlib import suppress
from functools import partial
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from linear import is_linear, seconds
from rag_eval.textual import credentials, detectors, leaks
from rag_eval.textual.credentials import known_keys, private_keys
from rag_eval.textual.detectors import (
    CATEGORIES,
    DETECTORS,
    compiled,
    ibans,
    internal_names,
    luhn,
)
from rag_eval.textual.leaks import (
    Leak,
    first_run,
    leaks_of,
    masked,
    masked_text,
    shared_runs,
    suspects,
)
from rag_eval.textual.tokens import tokens
from seams import Safety
from table import each_row

BY_NAME = {detector.name: detector for detector in DETECTORS}
HEX = "0123456789abcdef"
NUMBER = "123456789012"
A = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ2cF4hJ6kL8nP0rS2uV4xY6bD8fG1jM3qT5wZ7"

MAILS = """
jo.doe@acme.org|JO.DOE@ACME.ORG|jo+news@acme.co.uk|j@a.io|jo_doe@mail.acme.museum|jo-doe@sub-domain.acme.de
Write to jo@acme.org.|<jo@acme.org>|(jo@acme.org)|mailto:jo@acme.org|"jo@acme.org"|jo%acme@relay.acme.net
jo@acme.org,ann@acme.org|E-Mail:jo@acme.org|1234@acme.org|a.b.c.d@acme.technology|jo@xn--bcher-kva.de
jo@example.com|jo@mail.example.org|write to jo@acme.test|for example jo@acme.org|ann@example.com, jo@example.com
jo [at] acme [dot] org|jo.doe(at)acme.org|jo (at) mail (dot) acme (dot) de|jo@my-example.com|jo@example.acme.org
"""
NO_MAILS = """
@jo|jo@acme|jo at acme.org|user@localhost|@types/node|npm i left-pad@1.3.0|icon@2x.png|logo@3x.svg
git@github.com:acme/shop.git|name@sha256|10 @ 5.00 EUR|jo@|@acme.org|a@b|meet @ 5.pm|image@2x.webp|jo@@acme
price@100|your.name@acme.org|name@domain.com|first.last@yourcompany.com
meet (at) noon|array[at] index|for example jo@example.com|jo@mail.example.org is a placeholder|e.g. jo@acme.test
z. B. an jo@acme.example|使用例：jo@example.com
support@acme.org|no-reply@acme.org|Info@acme.org|test@test.com|user@acme.org
"""
PHONES = """
+49 30 901820|+49 (0)30 901820|+1 212 555 0123|+1-212-555-0123|+12125550123|+44 20 7946 0958|+33 1 23 45 67 89
+420 123 456 789|+34 612 345 678|0049 30 901820|(212) 555-0123|212-555-0123|212.555.2368|1-800-555-0199
(11) 98765-4321|06-12345678|010-2345-6789입니다|番号は090-1234-5678です|手机号是13812345678
Il cellulare del signor Bianchi è 347 1234567|телефон 8 (916) 123-45-67|her mobile number is 98 20 12 34 56
Su móvil es el 612 34 56 78
01 23 45 67 89|01.23.45.67.89|020 7946 0958|0171 2345678|030/9018200|(030) 9018200|03-1234-5678|Tel. 901820 55
phone: 555 0123 4|call us at 901 820 55|fax no. 9018-2055|WhatsApp 15112345678|+91 98765 43210|+81-3-1234-5678
"""
NO_PHONES = """
2024-01-15|15.01.2024|01/15/2024|01.02.2024 10:30|2024-01-15T10:30:00Z|10:30-11:45|1.2.3|v2024.10.31
10.0.19045.3693|192.168.100.200|550e8400-e29b-41d4-a716-446655440000|12345678-1234-1234-1234-123456789012
order 4000123456|invoice 2024-000123|no. 0012345678|ISBN 978-3-16-148410-0|ISBN 0-306-40615-2|3 000 000 people
1,234,567.89|+12 000 000 EUR|grew by +1 500 000|100000000|0.1234567890|da39a3ee5e6b4b0d3255bfef95601890afd80709
phone 2024-01-15|between 1990 and 2020|1990-2020|pages 100-200|GMT+05:30|1e+10|SKU 123-456|3.14159265358979
12345678901|2 x 100 mm|§ 12 (3) 4 BGB|the phone weighs 180 g|EN 60950-1|+20241231|+1 000 000 000|50 000 000 000
commande n° 06 12 34 56 78|4502 0831 9920 1177|4006 381 0333 931|the phone sold 23 000 000 units
La référence est 0445 120 231|Lot 0123 456789 was recalled|the parcel 1Z 999 AA1 01 2345 6784
Bestellnummer lautet 0241 998877
"""
SSNS = """
212-09-4567|SSN 212-09-4567|SSN:212-09-4567.|(212-09-4567)|001-01-0001|899-99-9999|665-12-3456|667-12-3456
123-45-6789|the number 321-54-9876|212-09-4567, 321-54-9876|"212-09-4567"|ssn=212-09-4567|his is 456-78-9012!
772-11-2233;|SSN 457 55 5462|DNI 12345678Z|CPF 529.982.247-25|PESEL 44051401359|身份证号：11010519491231002X
passport number: C1234567|Steuer-ID: 65 929 970 489
codice fiscale: RSSMRA85T10A562S|National Insurance number is JG 48 27 36 C|PAN card: BNZPM2501F|NIE: X4827361L
Reisepassnummer L8F4T2K91|passport no. C01X00T47|NHS number is 485 777 3456
medical record number: MRN 48273615|护照号：E48273615
身份证号码是110105199003075643|マイナンバーは159593236230です|RUT 12.345.678-0
"""
NO_SSNS = """
000-12-3456|666-12-3456|900-12-3456|987-65-4321|212-00-4567|212-09-0000|212094567|212 09 4567|212-094-567
2024-01-15|1212-09-4567|212-09-45678|212-09-4567-1|A-212-09-4567|01-02-2024|978-3-16-148410-0|212-555-0123
case 555-01-2024|ticket no. 555-01-2024|BSN 2024-01-15|SSN XXX-XX-1234
for example 078-05-1120|219-09-9999 is a sample|passport number required|passport number: UNKNOWN
patient number 12 of 30|PAN card: APPLY NOW
values such as 123-45-6789
"""
CARDS = """
4539 9458 0730 2151|4716736819303641|4485-2621-2997-2206|5425033224538329|5312 3640 5622 4159
2523 4990 9514 5478|372952772040566|3419 086569 07021|6011 9313 7585 8479|6511195406135894|3538525481454214
30562472019861|3618 039547 6201|4929075329264|6225126520642793|card: 4916287757447626.|(4024 1682 7521 7486)
4111 1111 1111 1111|4242424242424242|4000 0000 0000 0002|5555555555554444|5105 1051 0510 5100|378282246310005
3782 822463 10005|6011 1111 1111 1117|6011000990139424|30569309025904|4012 8888 8888 1881|4000 0025 0000 3155
for example 4539 9458 0730 2151
"""
NO_CARDS = """
4111 1111 1111 1112|4111111111111112|1234567812345670|0000 0000 0000 0000|9999999999999995|41111 11111 11111 1
4111 1111-1111 1111|order 20240115103000|978316148410|9783161484100|123456789012345678901|4111.1111.1111.1111
4111111111111111.5|12345678-1234-1234-1234-123456789012|411111111111111|1000200030004000|ID4111111111111111
1700000000000|2024 0115 1030 0000
the test card 4111 1111 1111 1111|4242424242424242 is a sample card|demo card: 378282246310005
such as 4012 8888 8888 1881|for tests use 4111 1111 1111 1111
"""
IBANS = """
DE97 8851 5904 5847 4452 90|DE97885159045847445290|GB72 BARC 7845 4748 5545 65|GB72BARC78454748554565
FR42 2755 8282 3574 1624 K998 649|FR422755828235741624K998649|NL10 INGB 8403 2979 23|CH73 2073 2021 5273 8067 5
AT35 6919 3350 5646 1850|BE60 8941 4885 9452|ES89 6698 5722 9697 3291 5061|NO12 5998 2596 663
IT85 K747 6629 9447 4605 4742 701|MT61 VALL 9734 0260 7884 3703 7424 479
IBAN DE97 8851 5904 5847 4452 90 BIC COBADEFFXXX|(DE97885159045847445290)|to DE97885159045847445290.
ES89-6698-5722-9697-3291-5061|DE89 3704 0044 0532 0130 00|GB82WEST12345698765432|for example DE97885159045847445290
"""
NO_IBANS = """
DE88 3704 0044 0532 0130 00|DE8937040044053201300|DE893704004405320130001|ZZ89 3704 0044 0532 0130 00
AB12 3456 7890 1234 5678|de89 3704 0044 0532 0130 00|ISO 9001 2015 CERTIFIED|EN60950|XDE89370400440532013000
COBADEFFXXX|VIN WVWZZZ1JZXW000001|DE 89|PO12 0000 0000 0000|GB82 WEST 1234 5698 7654|SKU DE89-3704-0044
NO93 8601 1117 948
test IBAN DE89 3704 0044 0532 0130 00|zum Beispiel GB82 WEST 1234 5698 7654 32|such as FR1420041010050500013M02606
"""
KEYS = [
    "AKIAIOSFODNN7EXAMPLE",
    "AKIAY34FZKBOKMUTVV7A",
    "key=ASIAY34FZKBOKMUTVV7A",
    f"sk-ant-api03-{A[:40]}",
    f"AccountKey={(A + A)[:86]}==",
    f"dop_v1_{HEX * 4}",
    f"MTAx{A[:20]}.{A[:6]}.{A[:27]}",
    f"dckr_pat_{A[:27]}",
    f"ATATT3xFfGF0{A}",
    f"aB38Q~{A[:34]}",
    f"https://discord.com/api/webhooks/{NUMBER}345678/{A}{A[:4]}",
    f"PMAK-{HEX}01234567-{HEX * 2}ab",
    f"pplx-{A[:48]}",
    f"pcsk_{A[:6]}_{A}",
    "dapi" + "0a1b2c3d" * 4,
    "sig=" + "aB3dE5gH7j" * 4,
    f"ghp_{A[:36]}",
    f"ghs_{A[:36]},",
    f"github_pat_{A}",
    f"glpat-{A[:20]}",
    f"AIza{A[:35]}",
    f"GOCSPX-{A[:28]}",
    f"glsa_{A[:32]}_1a2b3c4d",
    f"hvs.{A[:24]}",
    f"hf_{A[:34]}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    f"{HEX * 2}-us12",
    f"npm_{A[:36]}",
    f"sk-{A[:48]}",
    f"sk-proj-{A[:48]}",
    f"sk-my_own-{A[:20]}T3BlbkFJ{A[:20]}",
    f"pypi-AgEIcHlwaS5vcmc{A}{A}",
    f"SG.{A[:22]}.{A[:43]}",
    f"shpat_{HEX * 2}",
    f"xoxb-{NUMBER}-{A[:12]}",
    f"xapp-1-{A[:11].upper()}-{NUMBER}-{HEX}",
    "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop",
    f"sq0atp-{A[:22]}",
    f"sk_live_{A[:24]}",
    f"123456789:{A[:35]}",
    f"AC{HEX * 2}",
    f"pat{A[:14]}.{HEX * 4}",
    f"LTAI{A[:20]}",
    f"xkeysib-{HEX * 4}-{A[:16]}",
    f"bkua_{HEX * 2}01234567",
    f"CFPAT-{A[:43]}",
    f"CCIPAT_{A[:22]}_{HEX * 2}01234567",
    f"EAA{A}{A}",
    "pat-na1-550e8400-e29b-41d4-a716-446655440000",
    f"vercel_blob_rw_{A[:16]}_{A[:30]}",
    f"dp.st.prd.{A[:43]}",
    f"dt0c01.{A[:24].upper()}.{(A + A[:2]).upper()[:64]}",
    f"EZAK{A[:54]}",
    f"figd_{A[:40]}",
    f"1//0{A[:50]}",
    f"HRKU-{A[:36]}",
    f"AKCp{A}{A[:9]}",
    "sk-lf-550e8400-e29b-41d4-a716-446655440000",
    f"lsv2_pt_{HEX * 2}_{HEX[:10]}",
    f"key-{HEX * 2}",
    f"sk.eyJ{A[:50]}.{A[:22]}",
    f"NRAK-{A[:27].upper()}",
    f"ntn_{A[:46]}",
    f"sk-or-v1-{HEX * 4}",
    "access-production-550e8400-e29b-41d4-a716-446655440000",
    f"pscale_tkn_{A[:43]}",
    f"pul-{HEX * 2}01234567",
    f"rzp_live_{A[:14]}",
    f"r8_{A[:37]}",
    f"rubygems_{HEX * 3}",
    f"sntrys_{A}",
    f"shippo_live_{HEX * 2}01234567",
    f"squ_{HEX * 2}01234567",
    f"sbp_{HEX * 2}01234567",
    f"tskey-auth-{A[:11]}CNTRL-{A[:32]}",
    f"AKID{A[:32]}",
    f"{A[:14]}.atlasv1.{A}",
    f"Your OpenWeather key: {HEX * 2}",
    f"curl -H 'Authorization: token ghp_{A[:36]}' there",
]
NO_KEYS = [
    "550e8400-e29b-41d4-a716-446655440000",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit 3cb2b31f0a9d4c1e8b7a6f5e4d3c2b1a09f8e7d6",
    "ghp_short",
    "primary key 550e8400e29b41d4a716446655440000",
    "The cache key is da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "AKIA is how they begin",
    "AKIAiosfodnn7example",
    "sk-learn and sk-image",
    "task-management-and-scheduling-tools",
    "hf_hub_download(repo_id, filename)",
    "npm_config_registry",
    "https://acme.org/a/very/long/path/to/some/page?with=query&and=more",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "2024-01-15T10:30:00.000000+00:00",
    "SG.1.2",
    "eyJ.eyJ.x",
    "Donaudampfschifffahrtsgesellschaftskapitän",
    "ISBN978-3-16-148410-0-and-more-of-it",
    "xoxo-love-and-kisses",
    f"sk-{'X' * 24}",
    f"ghp_{'x' * 36}",
    f"pk_live_{A[:32]}",
    f"sha512-{A}",
    "test_ThatTheV2EndpointReturnsTheRightStatusCode",
    f"chatcmpl-{A[:27]}",
    "for example AKIAIOSFODNN7EXAMPLE",
    "xoxb-1234-your-bot-token-goes-here",
    "AKIAIOSFODNN7EXAMPLE and the secret key that belongs to it, as in the examples of the vendor",
]
KINDS = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "SSH2 ENCRYPTED ")
PRIVATE = [
    *(f"-----BEGIN {kind}PRIVATE KEY-----" for kind in KINDS),
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "PuTTY-User-Key-File-2: ssh-rsa",
    "PuTTY-User-Key-File-3: x",
    "AGE-SECRET-KEY-1QQQ",
    "x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    '"-----BEGIN RSA PRIVATE KEY-----\\n"',
    "key: -----BEGIN RSA PRIVATE KEY-----",
    "(-----BEGIN RSA PRIVATE KEY-----)",
]
NO_PRIVATE = [
    *(f"-----BEGIN {kind}-----" for kind in ("PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE", "PGP MESSAGE")),
    "-----BEGIN PGP PUBLIC KEY BLOCK-----",
    "a private key",
    "PRIVATE KEY",
    "BEGIN PRIVATE KEY",
    "-----END RSA PRIVATE KEY-----",
    "PuTTY is a client",
    "KEY-----",
    "---BEGIN PRIVATE KEY---",
    "-----begin private key-----",
    "AGE-SECRET-KEY",
    "The KEY is private",
    "-----BEGIN PRIVATE KEY----- ... -----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\n<your key>\n-----END RSA PRIVATE KEY-----",
]
SCHEMES = ("http", "https", "ftp", "postgres", "mysql", "redis", "amqp", "mongodb+srv", "smtp")
URLS = [
    *(f"{scheme}://jo:hunter22@db.acme.org" for scheme in SCHEMES),
    "https://:hunter22@acme.org",
    "https://jo:h%40nter@acme.org/x",
    "see https://jo:a.b.c@acme.org.",
    "s3://k:v3ry@b",
    "x://u:123@h",
    "https://jo.doe:pa55@a",
    f"https://api.acme.org/weather?q=Oslo&appid={HEX * 2}",
    f"https://acme.org/v1?key={A[:24]}",
    f"wss://acme.org/live?access_token={A[:30]}",
]
NO_URLS = [
    "https://acme.org",
    "https://jo@acme.org",
    "https://acme.org:8080/x",
    "https://jo:password@acme.org",
    "https://user:<password>@acme.org",
    "https://jo:${PASS}@acme.org",
    "https://jo:%PASS%@acme.org",
    "https://jo:xxxx@acme.org",
    "https://jo:****@acme.org",
    "mailto:jo@acme.org",
    "https://acme.org/a:b@c",
    "a://b",
    "https://acme.org/?q=a:b@c",
    "jo:hunter22@acme.org",
    "https://jo:your-pass@a",
    "https://acme.org:443/@x",
    "https://acme.org/?key=created-at-and-updated-at",
    "https://acme.org/?token=YOUR_API_TOKEN_1_HERE",
    f"https://acme.org/?page={A[:24]}",
]
COMMANDS = """
curl -u admin:Tr0ub4dor https://acme.org|curl --user 'svc:s3cret-pa55' https://acme.org|curl -usvc:hunter22 acme.org
mysql -u root -pTr0ub4dor shop|mysqldump -h db -ps3cret_x9 shop|mariadb-dump -pTr0ub4dor shop
redis-cli -a Tr0ub4dor ping|mysql --password=Tr0ub4dor shop|wget --user=jo --password=Tr0ub4dor ftp://acme.org
mongosh --password Tr0ub4dor
sshpass -p 'Tr0ub4dor' ssh jo@acme.org|docker login -u ci -p Tr0ub4dor acme.org|sqlcmd -S db -U sa -P Tr0ub4dor
ldapsearch -D cn=admin -w Tr0ub4dor|redis-server --requirepass Tr0ub4dor|az login -u jo -p Tr0ub4dor~9x
"""
NO_COMMANDS = """
curl -u user:password https://acme.org|curl -u "$USER:$PASS" https://acme.org|curl -u <user>:<pass-123> acme.org
mysql -u root -p shop_2024|mysql -p|mysql -uroot -p$PASSWORD1|docker run -p 8080:8080 nginx|docker run -u 1000:1000 x
mkdir -p src/v2/main|ssh -p 2222 acme.org|sshpass -p "$PASS_1" ssh x|wget --password=YOUR_PASS1 x|cp -a dir1/sub2 x
tar -p file1.tar|docker login -u <user> -p <token-1>|mysql --password=******** shop
nmap -p 1-65535 host|grep -w v1.2.3-4
the range 5 -p 20-30 apples|--password is required|sort -u name:value
"""
STATED = """
password: tr0ub4dor&3|Password = "Winter2024!"|the password is tr0ub4dor&3.|pwd=9fK2mQx7|token=9fK2mQx7Lp0Z
"api_key": "9fK2mQx7Lp0Z"|API key: 9fK2mQx7Lp0Z|api-key=9fK2mQx7Lp0Z|secret => 9fK2mQx7Lp0Z
client_secret := 9fK2mQx7Lp0Z|Authorization: Bearer 9fK2mQx7Lp0Z9fK2mQx7|DB_PASSWORD=s3cr3tV4lue
passphrase: c0rrectH0rse|the access key is 9fK2mQx7Lp0Z|credentials: jo/9fK2mQx7|**Password**: `9fK2mQx7`
auth_key=9fK2mQx7Lp0Z|Das Passwort lautet Gh7$kLp2|Hasło: Kr4kow#2021|密码是 Hx92#kd81|パスワードは Sakura2024! です
password `aX9#mm21Lq`|Authorization: Basic YWRtaW46UzNjcjN0UGFzcw==
The Datadog API key is 0a1b2c3d4e5f60718293a4b5c6d7e8f9|application key: 54320832554288357744c55685d3b7a5
global api key 4d9682846984372e5e6a1abf3336b04f01a67
the session secret for production is 0577a6ab9f02f18ae01bbb1f93a0ce
SECRET_KEY_BASE=0577a6ab9f02f18ae01bbb1f93a0ce|password: kQzTrWbLpXn|JWT_SECRET=gHxRtbKWqLmzPd|password: wRtKbQzx
Algolia admin key 3df628d77bff8651c84399bbdf428d33 is public|DB_PASS=5QE7012u85*g|Der API-Schlüssel lautet 9fK2mQx7Lp0Z
the password was changed to 9fK2mQx7|Das Passwort der Filiale ist 9fK2mQx7|mot de passe du serveur est 9fK2mQx7
as jo with the password Tr0ub4dor&3x|user jo, password vWFsqd44!O|with the password YGmHkeFCqurd.
PASSWORD=tmphXwoKgziWSWob
"""
NO_STATED = """
password: <your-password>|password=********|password is required|the password is reset after 30 days
token: ${TOKEN}|token={{ token }}|password: changeme123|secret = os.environ["X1"]|api_key=YOUR_API_KEY_1
token limit: 128000 tokens|the secret is out|password: at least 8 characters|key: value|token: 2024-01-15
password policy: min-length-12|passwords expire 90 days|tokens: 1.234.567|password=example1234
bearer of good news|the password is reset-after-30-days|api key: https://acme.org/keys/1234|Secret: x
the password must-be-8-chars!|the password OAuth2Client|a token GetSecretValue|the password UserPrincipalName
password ThrottlePolicy
SECRET_KEY_BASE=<your-secret>|SECRET_KEY_BASE=$(rails)|password: mandatory|Passwort: mindestens|token = getJwtToken
password: parseXMLValue|token: OAuthToken|password: MANDATORY|secret_key_base: unavailable|token: firstMiddleLast
secret: xxxxxxxx1|basic rules for 12345678901234567890|password=****1234abcd|token: 12345678|password: aaaaaaa1
the token type is bearer_v2_opaque|The cache key is user_profile_0a1b2c3d|sort key 0a1b2c3d4e5f60718293a4b5c6d7e8f9
commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 fixes the token|PASSWORD_MIN_LENGTH=12
token tests/unit/test_login_form.py
"""


def rows(name, seen, *, found):
    texts = seen if isinstance(seen, list) else [text for line in seen.strip().splitlines() for text in line.split("|")]
    return [pytest.param(name, text, found, id=f"{name}-{text[:40]}") for text in texts]


CASES = [
    *rows("e-mail address", MAILS, found=True),
    *rows("e-mail address", NO_MAILS, found=False),
    *rows("phone number", PHONES, found=True),
    *rows("phone number", NO_PHONES, found=False),
    *rows("identity number", SSNS, found=True),
    *rows("identity number", NO_SSNS, found=False),
    *rows("payment card number", CARDS, found=True),
    *rows("payment card number", NO_CARDS, found=False),
    *rows("IBAN", IBANS, found=True),
    *rows("IBAN", NO_IBANS, found=False),
    *rows("key of a known format", KEYS, found=True),
    *rows("key of a known format", NO_KEYS, found=False),
    *rows("private key", PRIVATE, found=True),
    *rows("private key", NO_PRIVATE, found=False),
    *rows("secret in a URL", URLS, found=True),
    *rows("secret in a URL", NO_URLS, found=False),
    *rows("password in a command", COMMANDS, found=True),
    *rows("password in a command", NO_COMMANDS, found=False),
    *rows("stated secret", STATED, found=True),
    *rows("stated secret", NO_STATED, found=False),
]


@each_row(("name", "text", "found"), CASES)
def test_a_detector_sees_what_it_is_for_and_nothing_else(name, text, found):
    spans = list(BY_NAME[name].spans(text))
    assert bool(spans) == found, [text[slice(*span)] for span in spans]
    assert all(0 <= start < end <= len(text) for start, end in spans)


@each_row(("name", "text"), [case.values[:2] for case in CASES if case.values[2]])
def test_what_is_found_within_a_sentence_is_the_same(name, text):
    inside = f"It says here: {text} and more of it"
    own, found = ([one[slice(*span)] for span in BY_NAME[name].spans(one)] for one in (text, inside))
    assert found == own


def test_numbers_with_typographic_hyphens_and_spaces_are_found():
    text = "Call +1\u2011212\u2011555\u20110123 or +49\u202f30\u00a0901820."
    found = [leak.text for leak in leaks_of(text, [], [], Safety())]
    assert found == ["+1\u2011212\u2011555\u20110123", "+49\u202f30\u00a0901820"]
    assert suspects([text, "no number"], Safety()) == {0}


def test_every_detector_is_shown_at_work_fifteen_times_either_way():
    for name in BY_NAME:
        counts = [sum(case.values[0] == name and case.values[2] is found for case in CASES) for found in (True, False)]
        assert min(counts) >= 15, (name, counts)


def test_every_format_of_keys_has_an_example():
    table = files("rag_eval.textual").joinpath("data", "keys.toml").read_text(encoding="utf-8")
    forms = [re.compile(form) for form in tomllib.loads(table).values()]
    assert [form.pattern for form in forms if not any(form.search(key) for key in KEYS)] == []


def luhn_by_table(digits):
    """Luhn's check as it is taught: from the right, every second digit doubled, nine off where it passes nine."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


@given(st.text("0123456789", min_size=1, max_size=20))
def test_luhn_is_luhn(digits):
    assert luhn(digits) == luhn_by_table(digits)
    assert sum(luhn(digits + last) for last in "0123456789") == 1


@given(st.sampled_from(["DE97885159045847445290", "GB72BARC78454748554565"]), st.data())
def test_an_iban_with_one_character_changed_is_none(iban, data):
    place = data.draw(st.integers(4, len(iban) - 1))
    other = data.draw(st.sampled_from(sorted(set(string.digits) - {iban[place]})))
    changed = iban[:place] + other + iban[place + 1 :]
    if iban[place].isdigit():
        assert list(ibans(changed)) == []


# The library's own patterns say what keys look like: what they make up, ours find. Where ours ask for more than they do
# (a word's beginning, the parts of a token), that stands here.
LIBRARY = {
    "aws": r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
    "discord": None,
    "github_token": None,
    "gitlab_token": None,
    "mailchimp": None,
    "openai": None,
    "private_key": None,
    "pypi_token": None,
    "sendgrid": None,
    # Tokens of it may have eight characters.
    "slack": r"https://hooks\.slack\.com/services/T[a-zA-Z0-9_]+/B[a-zA-Z0-9_]+/[a-zA-Z0-9_]+",
    "square_oauth": None,
    "stripe": None,
    "telegram_token": None,
}


def library_patterns():
    from importlib import import_module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, own in LIBRARY.items():
            module = import_module(f"detect_secrets.plugins.{name}")
            for kind in vars(module).values():
                if isinstance(kind, type) and kind.__module__ == module.__name__ and getattr(kind, "denylist", ()):
                    yield from ((name, form.pattern) for form in kind.denylist if own in (None, form.pattern))


@each_row(("name", "form"), sorted(set(library_patterns())))
def test_keys_in_the_formats_of_a_well_kept_library_are_found(name, form):
    @examples(40)
    @given(
        st.from_regex(
            re.compile(form, re.ASCII),
            fullmatch=True,
            alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")),
        )
    )
    def every_key_is_found(key):
        text = f"The key is: {key} , or -----{key}----- , they say."
        assert [*known_keys(text), *private_keys(text)] != []

    every_key_is_found()


SIGNS_OF_LEAKS = 'key=|eyJ|://|a:b@|sk-|0123 |AB12|bearer |token is |tel |-----BEGIN |"|é'
STARTS_OF_LEAKS = " -u a:|mysql -p|[at]|token for x |passport no |?key="
FRAGMENTS = [*"a1-.@ +(", *SIGNS_OF_LEAKS.split("|"), *STARTS_OF_LEAKS.split("|")]
LEAKING = [
    "jo@acme.org",
    "+49 30 901820",
    "123-45-6789",
    "4539 9458 0730 2151",
    "DE97 8851 5904 5847 4452 90",
    "mysql -pTr0ub4dor",
    "jo [at] acme.org",
    "PAN card: BNZPM2501F",
    f"ghp_{'a1' * 18}",
    "-----BEGIN PRIVATE KEY-----",
    "https://jo:s3cret@host",
    "API Key: Zx81kk42qq",
    "bearer Zx81kk42qqZx81kk42qqaa",
]


def all_spans(detector, text):
    return list(detector.spans(text))


@examples(30)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4))
def test_a_long_string_takes_time_in_proportion(parts):
    text = ("".join(parts) * 100_000)[:100_000]
    assert [detector.name for detector in DETECTORS if not is_linear(partial(all_spans, detector), text)] == []


@examples(300)
@given(st.lists(st.lists(st.sampled_from([*FRAGMENTS, *LEAKING]), max_size=5).map(" ".join), max_size=8))
def test_no_text_that_is_not_suspected_has_anything_in_it(texts):
    """Alone, where each detector is asked, and among others."""
    suspected = suspects(texts, Safety())
    assert suspected == {place for place, text in enumerate(texts) if suspects([text], Safety())}
    for place, text in enumerate(texts):
        found = [span for detector in DETECTORS for span in detector.spans(text)]
        assert place in suspected or not found
    assert suspects(texts, Safety(internal_ids=("EMP-[0-9]",))) == set(range(len(texts)))


def repeats_within(parsed, inside=False):
    """Whether a parsed pattern repeats, without end, what repeats without end."""
    for kind, value in parsed:
        if str(kind) in ("MAX_REPEAT", "MIN_REPEAT"):
            endless = value[1] > 10_000
            if (endless and inside) or repeats_within(value[2], inside or endless):
                return True
        if str(kind) == "SUBPATTERN" and repeats_within(value[3], inside):
            return True
        if str(kind) == "BRANCH" and any(repeats_within(branch, inside) for branch in value[1]):
            return True
    return False


def test_no_pattern_repeats_what_repeats():
    from re import _parser

    named = [item for module in (credentials, detectors, leaks) for item in vars(module).items()]
    patterns = [one.pattern for _, one in named if isinstance(one, re.Pattern)]
    patterns += [
        one for name, one in named if isinstance(one, str) and re.fullmatch("_[A-Z0-9_]+", name) and name != "_ENDS"
    ]
    assert len(patterns) > 15
    assert [one for one in patterns if repeats_within(_parser.parse(one))] == []
    assert repeats_within(_parser.parse("(a+)+b"))


def names(pattern, text):
    return [text[slice(*span)] for span in internal_names(compiled(pattern), text)]


def test_internal_names_are_found_anywhere_and_once():
    text = f"EMP-000001 {'x ' * 395}EMP-000002 {'y ' * 700}EMP-000003"
    assert names("EMP-[0-9]{6}", text) == ["EMP-000001", "EMP-000002", "EMP-000003"]
    assert names("x*", "abc") == []


@given(st.integers(0, 3000), st.integers(1, 150))
def test_internal_names_are_found_at_any_place(before, digits):
    assert names("Z[0-9]+", " " * before + "Z" + "1" * digits + " " * 900) == ["Z" + "1" * digits]


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|aa){1,}c",
        r"((\w+)\s?)*!",
        "a*a*a*a*a*a*b",
        "(a|a){30}!",
        "(?:(?:a?))+?b",
        "a{0,900}a{0,900}!",
        "x*a|a",
    ],
)
def test_no_pattern_takes_long(pattern):
    assert seconds(partial(names, pattern), "a" * 100_000) < 30  # one second here, and days if it backtracks


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\bid[0-9]\b", f"{'x' * 999} id1 {'y' * 794}id2 {'z' * 5}id3", ["id1"]),
        ("^x", "x" * 3_000, ["x"]),
        ("x$", "x" * 3_000, ["x"]),
        ("ß+", "é" * 999 + "ßß" + "\U0001f600" * 900 + "ß", ["ßß", "ß"]),
        ("[0-9]{2}", "\ud80012\udfff34", ["12", "34"]),
    ],
)
def test_windows_of_a_text_do_not_show(pattern, text, found):
    assert names(pattern, text) == found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", r"invalid perl operator: \(\?="),
        (r"(a)\1", "invalid escape sequence"),
        ("a++", "bad repetition operator"),
        ("(a", "missing \\)"),
        ("(?u)a", "invalid perl operator"),
        ("((a{100}){100}){10}", "invalid repetition size"),
        (r"(\pL{500}\d|\pL)", "pattern too large"),
        ("a{99999999999}", "repetitions are written"),
        ("a{,5}", "repetitions are written"),
        ("a\ud800", "surrogate"),
    ],
)
def test_what_re2_does_not_know_is_refused(pattern, why):
    with pytest.raises(ValueError, match=why):
        compiled(pattern)


@given(
    st.text(max_size=30) | st.lists(st.sampled_from(list("()[]{}?*+|^$\\abPu<>=!:,-019.")), max_size=30).map("".join)
)
def test_any_text_is_a_pattern_or_is_refused(pattern):
    with suppress(ValueError):
        names(pattern, "abPu (a){2} \ud800 ä")


words = st.lists(st.sampled_from("abc"), max_size=30)


@examples(400)
@given(words, words, st.integers(1, 8))
def test_shared_runs_are_those_that_a_plain_search_finds(said, source, length):
    plain = {tuple(said[at : at + length]) for at in range(len(said) - length + 1)}
    plain &= {tuple(source[at : at + length]) for at in range(len(source) - length + 1)}
    assert shared_runs(said, [[], source], length) == plain


def test_a_run_is_where_its_words_are_and_may_be_expected():
    chunk, text = "one two three four five six", "They say: Two, THREE four! And no more."
    span = first_run(text, [tokens(chunk)], 3)
    assert text[slice(*span)] == "Two, THREE four"
    assert first_run(text, [tokens(chunk)], 4) is None
    assert first_run(text, [tokens(chunk)], 3, ["TWO three four"]) is None
    assert first_run("one two three", [["one", "two"], ["three"]], 3) is None


def test_a_later_run_is_found_where_the_first_one_may_be_said():
    chunk, text = "one two three four five six", "one two three, and then: four five six"
    span = first_run(text, [tokens(chunk)], 3, ["one two three"])
    assert text[slice(*span)] == "four five six"


def test_words_that_are_cut_otherwise_give_the_whole_text():
    text = "返品は三十日以内です"
    assert first_run(text, [tokens(text)], 5) == (0, len(text))


def found_in(text, expected=(), chunks=(), **told):
    return [(leak.category, leak.text) for leak in leaks_of(text, expected, chunks, Safety(**told))]


def test_what_is_found_comes_by_place_with_its_category():
    text = f"EMP-004711: jo@acme.org, ghp_{A[:36]}"
    assert found_in(text, internal_ids=("EMP-[0-9]{6}",)) == [
        ("internal", "EMP-004711"),
        ("personal", "jo@acme.org"),
        ("secrets", f"ghp_{A[:36]}"),
    ]
    assert {detector.category for detector in DETECTORS} < set(CATEGORIES)


@pytest.mark.parametrize("expected", ["jo@acme.org", "Is JO@ACME.ORG yours?", "jo@acme.org, +49 30 901820"])
def test_what_was_asked_for_may_be_said(expected):
    assert found_in("Write to jo@acme.org.", [expected]) == []
    assert found_in("Write to ann@acme.org.", [expected]) == [("personal", "ann@acme.org")]


def test_a_number_may_be_said_however_it_is_cut():
    assert found_in("Call +49 30 901820.", ["+4930901820"]) == []


def test_signs_alone_may_be_said_only_as_they_are():
    told = {"internal_ids": ("§§§",)}
    assert found_in("§§§", ["no sign"], **told) == [("internal", "§§§")]
    assert found_in("§§§", ["what is §§§"], **told) == []


@pytest.mark.parametrize(
    ("text", "shown"), [("jo@acme.org", "jo*******rg"), ("abcd", "****"), ("abcde", "ab*de"), ("", "")]
)
def test_masks_show_two_characters_either_side(text, shown):
    assert masked(text) == shown


@given(st.text(max_size=60))
def test_masks_keep_all_but_four_characters_back(text):
    shown = masked(text)
    assert len(shown) <= max(16, 4)
    assert len(text) <= 4 or shown.strip("*") == "" or set(shown[2:-2]) == {"*"}


def test_a_text_without_its_leaks_holds_none_of_them():
    text = f"EMP-004711 or jo@acme.org: the token is ghp_{A[:36]}, again jo@acme.org."
    found = leaks_of(text, [], [], Safety(internal_ids=("EMP-[0-9]{6}",)))
    shown = masked_text(text, found)
    assert all(leak.text not in shown for leak in found)
    assert shown.startswith("EM******11 or jo*******rg: the token is gh")
    assert shown.endswith(", again jo*******rg.")


def test_overlapping_leaks_are_masked_once_and_whole():
    leaks = [
        Leak("personal", "a", 0, 6, "abcdef"),
        Leak("secrets", "b", 3, 9, "defghi"),
        Leak("verbatim", "c", 0, 12, ""),
    ]
    assert masked_text("abcdefghi jk", leaks) == "ab*****hi jk"


@each_row(
    ("text", "detector"),
    [
        ("Passwort: Xy7kq9Lm2p", "stated secret"),
        ("Votre mot de passe : Xy7kq9Lm2p", "stated secret"),
        ("La contraseña es: Xy7kq9Lm2p", "stated secret"),
        ("Use dapi" + "0a1b2c3d" * 4 + " for the cluster.", "key of a known format"),
        ("https://a.blob.core.windows.net/c?sv=2022&sig=" + "aB3dE5gH7j" * 4 + "%3D", "key of a known format"),
        ("His SSN is 536221234.", "identity number"),
        ("The population is 536221234.", ""),
        ("ftp://admin:Xy7kq9Lm2p@files.corp-mail.org/x", "secret in a URL"),
        ("Call us at 555-223-4567.", "phone number"),
        ("Order number 555-223-4567 has shipped.", ""),
        ("Part no. 0203 456 78901 is out of stock.", ""),
        ("See case 212-555-0147 for details.", ""),
        ("Ticket #415-555-2671 is closed.", ""),
    ],
)
def test_a_form_is_found_once_and_numbers_of_orders_parts_and_cases_are_no_leaks(text, detector):
    assert ", ".join([leak.detector for leak in leaks_of(text, (), (), Safety())]) == detector
