"""Secrets are masked wherever they stand and whatever they look like; nothing of a job is taken for one."""

import base64
import json
import os
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec
import pytest
from secrets_data import HARMLESS, HARMLESS_TOO, LETTERS, VENDORS, WRITTEN, kinds, places, word

from dtdebug.cli.main import main
from dtdebug.presentation.diagnosis_card import bundle
from dtdebug.privacy import boundary
from dtdebug.privacy.redact import environment, mask
from dtdebug.privacy.redact.secret_names import secret
from dtdebug.privacy.sanitize import MASK, arguments, clean
from dtdebug.storage import doctor_result
from dtdebug.storage.doctor_result import Examination
from dtdebug.storage.last_failure import LastFailure
from dtdebug.wizard.session import Session, to_json
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot
from dtdebug_taxonomy.presentation.case_json import contract, of_text
from dtdebug_taxonomy.presentation.text import to_markdown, to_text

SEEDS = (7, 11)


def parts(secret):
    """What must not be seen of it: a quote may be written in another way."""
    return secret.split("'")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_kind_of_secret_passes_in_any_place(seed):
    """More than 150 kinds in eight places."""
    made = list(kinds(seed))
    passed = [
        f"{kind}, {place}: {clean(told)}"
        for kind, text, value in made
        for place, told in places(text)
        if any(part in clean(told) for part in parts(value))
    ]

    assert len(made) >= 150
    assert [] == passed


@pytest.mark.parametrize("line", ["password @@", "set -gx DB_PASSWORD @@", "the password for me is @@", "pw = '@@'"])
@pytest.mark.parametrize("chosen", ["oubdtm$7006", "Winter20481", "h7unter!", "correct5horse9"])
def test_a_password_that_somebody_has_chosen_is_masked_behind_its_name(line, chosen):
    assert chosen not in clean(line.replace("@@", chosen))


@pytest.mark.parametrize(
    "line",
    [
        "the passphrase is @@", "set password @@", "ssh-keygen -N @@ -f id", "skopeo login -u me -p @@ host",
        "az login --service-principal -u a -p @@ -t t", "mongosh --host h -u me -p @@", "sqlcmd -S h -U sa -P @@",
        "htpasswd -b /x me @@",
        "rclone obscure @@", "net user me @@ /add", "rabbitmqctl add_user me @@", "smbclient -U dom\\me%@@ //h/s",
        "xfreerdp /v:h /u:me /p:@@", "echo root:@@ | chpasswd", "skopeo copy --src-creds me:@@ a b", "secret: !!str @@",
        "password: &pw @@", "token: &t !!str '@@'", "password = '''@@'''", 'secret = """@@"""',
        "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1d@@",
        '10:00:00 [rank3] INFO password: "@@ and more"', '2024-01-01 - WARNING - db_password: "a @@ b"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("chosen", ["Winter_kem5u", "kaffee-wAUL5", "oubdtm$7006"])
def test_a_chosen_password_is_masked_where_programs_take_it(line: str, chosen: str) -> None:
    assert chosen not in clean(line.replace("@@", chosen))


@pytest.mark.parametrize(
    "line",
    [
        "az login -p is deprecated", "net user guide for ranks", 'WARNING secret: "not set"', "smb share at //h/s",
        'ERROR key: "too many tokens here"', "mongo shards per node 4", "zip -P 4 procs",
        '{"username": "me", "key": "rank0"}', "INFO password: please type it", "AC power: 300 W",
    ],
)  # fmt: skip
def test_words_where_programs_take_a_password_stay(line: str) -> None:
    assert clean(line) == line


@pytest.mark.parametrize(
    "line",
    [
        'Authorization: Digest username="u", realm="r", response="@@"',
        "authorization: AWS4-HMAC-SHA256 Credential=AKIAQW2E4R6T8Y1U3I5O/1, SignedHeaders=host, Signature=@@",
    ],
)
def test_what_a_header_proves_a_key_with_is_masked(line: str) -> None:
    proof = random.Random(5).randbytes(32).hex()
    assert proof not in clean(line.replace("@@", proof))
    assert clean("signature=forward response=200") == "signature=forward response=200"


def test_keys_of_accounts_are_masked() -> None:
    key = random.Random(3).randbytes(16).hex()
    assert key not in clean(f'{{"username":"me","key":"{key}"}}')
    assert key not in clean(f"AC{'a' * 31}1:{key}")


PASSWORD = (
    "密码", "口令", "パスワード", "비밀번호", "пароль", "contraseña", "mot de passe", "Kennwort", "senha",
    "hasło", "parola", "wachtwoord", "lösenord", "şifre", "heslo", "mật khẩu", "كلمة المرور", "סיסמה", "पासवर्ड",
)  # fmt: skip
TOKEN = ("密钥", "令牌", "秘密鍵", "トークン", "토큰", "токен", "секрет", "jeton", "secreto", "segredo", "Geheimnis")


@pytest.mark.parametrize("name", [*PASSWORD, *TOKEN])
def test_a_secret_is_known_by_its_name_in_other_languages(name):
    rng = random.Random(name)
    value = word(rng, 12)
    wide = f"[rank0]: {name}\N{FULLWIDTH COLON}'{value}'\n"
    for form in (f"{name}: {value}", f"{name}={value}", wide, f'{{"{name}": "{value}"}}'):
        assert value not in clean(form), form


@pytest.mark.parametrize(
    "line",
    [
        "密码错误", "密码: 错误", "密码长度: 2048", "トークン: 4096", "токен: 128000", "令牌: [CLS]",
        "토큰: <pad>", "clé: epoch_12", "mot de passe: null", "senha: None", "senha: invalid", "ключ: rank",
        "chiave: optimizer", "llave: nccl:all_reduce",
        "密钥: model.layers.0.weight", "ключ = hidden_size", "секрет успеха: терпение", "schlüssel: weight.0.bias",
        "mot de passe: ${DB_PASSWORD}", "hasło: true", "パスワード: {password}", "parola: chiave",
    ],
)  # fmt: skip
def test_words_of_other_languages_that_name_no_secret_stay(line):
    assert clean(line) == line


def test_a_quoted_value_of_a_configuration_is_masked_with_its_blanks():
    for quote in "\"'":
        text = f"db:\n  password: {quote}correct horse battery{quote}\n  user: me\n"
        assert clean(text) == f"db:\n  password: {quote}{MASK}{quote}\n  user: me\n"


PREFIXES = ["", "[rank0]: ", "[default1]:", "2026-04-26 12:36:01 ", '   + "']


@pytest.mark.parametrize("before", PREFIXES)
@pytest.mark.parametrize("part", [slice(None), slice(9), slice(5, None)])
@pytest.mark.parametrize("shown", [str, repr])
def test_no_line_of_a_private_key_passes_wherever_it_is_cut_off(before, part, shown):
    rng = random.Random(9)
    body = [word(rng, 64) for _ in range(12)] + ["q7Idd7="]
    key = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"]
    told = clean(shown("\n".join(["step 1", *(before + line for line in key[part]), "step 2"])))

    assert [] == [line for line in body if line in told]
    assert "step 1" in told
    assert "step 2" in told


def test_many_halves_of_private_keys_cost_no_more_than_their_length():
    began = time.process_time()
    clean("-----BEGIN PRIVATE KEY-----\n" * 3_000)
    short = time.process_time() - began
    clean(("-----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\n") * 9_000 + "-----END PRIVATE KEY-----\n" * 9_000)

    assert time.process_time() - began < 60 * short + 5


def test_a_signed_address_is_masked():
    link = "s3://b/x?X-Amz-Signature=@@&X-Amz-Date=20250101"
    assert link.replace("@@", MASK) == clean(link.replace("@@", word(random.Random(2), 64, "0123456789abcdef")))


def test_lines_as_people_write_them_keep_no_secret():
    rng = random.Random(3)
    filled = [(line, word(rng, 20)) for line in WRITTEN]

    assert [] == [line for line, value in filled if value in clean(line.replace("@@", value))]


@pytest.mark.parametrize(
    "line",
    [
        'if password == "@@":', "if api_key !== '@@' {", 'if ("@@" == client_secret) {', "api_key: '@@ and @@ and'",
        'db_password_prod = "@@"', '- passphrase: "@@ @@"', "<Pass>@@</Pass>", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi@@",
        "- name: HF_TOKEN\n      value: @@", "<key>DB_PASSWORD</key>\n  <value>@@</value>", "passwords: ['x', '@@']",
        "WITH PASSWORD '@@'", "the password for user 'me' is '@@'.", 'os.environ.setdefault("WANDB_API_KEY", "@@")',
        "auth=('me', '@@')", "jwtsecret: @@", ":password       => '@@'", "$6$rounds=5000$Zk3x9Q$@@", "GITHUBKEY=@@",
        "| api_key | @@ |", "API_KEY            @@", "api_key: str = '@@'", "api_key -> @@", "?a%3Fapi_key%3D@@",
        "SecretStr(api_key=SecretStr('@@'))", "api_key,@@", "(b'x-api-key', b'@@')",
        "the API key provided: @@. Find", "api_key: >-\n  @@",
        "['Using', 'acme', 'key', 'acme_@@']", "me:@@@db.example:5432",
        "<secret>{acme AQAAAB @@}</secret>", "K_API_KEY=gZ(@@",
        "api_key\n  Extra inputs are not permitted [type=extra_forbidden, input_value='@@', input_type=str]",
        "curl -k \\\n  --proxy-user me:@@ \\\n  https://h.example", '[("password", "@@")]',
        "wandb.login(key='@@', relogin=True)", 'HTTPBasicAuth("me", "@@")', "echo @@ | sudo -S apt",
        "unzip -P @@ a.zip", "openssl enc -k @@", "keytool -storepass @@", ">>> pw = '@@'",
        "API key verification failed for key @@. Make sure", "the password for me is @@",
        'PASSWORD = env.get("PASSWORD") or "@@"', "TOKEN = ENV['TOKEN'] || '@@'", 'token = getenv("TOKEN", "@@")',
        'token = getenv("A") ? getenv("A") : "@@"', 'setopt(curl, CURLOPT_PROXYUSERPWD, "me:@@")', "X_PSWD=@@",
        'char my_password[255] = "@@";', 'const API_TOKEN string = "@@"', '"token" -> "@@"', 'auth[:token] = "@@"',
        "passwords:\n  - abcdef\n  - '@@'\n", "val password: String = '@@'", "CREATE USER me IDENTIFIED BY @@;",
        "ConvertTo-SecureString -String -Force @@", "<db_pwd>@@</db_pwd>", "other: @@ password: @@", "my_api = '@@'",
        "$apiToken .= '@@'", 'PASSWORD ?= "@@"', 'API_TOKEN ::= "@@"',
        '/oauth_signature="@@%3D"/', "db.example:5432:runs:me:@@", "cat: *:*:*:me:@@",
        "docker run --user me:@@", "password for me: @@",
    ],
)  # fmt: skip
def test_secrets_in_programs_and_configurations_are_masked(line):
    """Compared with, in names of several words, as several words, and where a signed token is cut."""
    secret = word(random.Random(line), 24)
    assert secret not in clean(f"x = 1\n    {line.replace('@@', secret)}\ny = 2")


@pytest.mark.parametrize(
    "line",
    [
        'if token == "<|endoftext|>_1":',
        'if key == "module.layers.0.weight":', 'elif secret == "none":', '"pass" == mode',
        "def f(access_token: AccessToken) -> bool:", "self.token = await self.get_token()", 'db_secret="$1"',
        "password: {{ vault_password }}", "MasterUserPassword: !Ref Other", "docker login -u me -p <NGC_API_KEY>",
        "--secret-string file:///tmp/batch_key", "%{group} ALL=(ALL:ALL) NOPASSWD:ALL", 'PASS: "#d4edda"',
        "pull_secret: ngc-registry  # of the registry", "HF_TOKEN=hf_" + "x" * 34, "token: gpud.example.ai/token",
        'secret "hf-token" not found', "Pass :obj:`None` for no", '"smallnorb-5x46789x9x18x6x2x96x96-training.mat"',
        'P2P id "12D3KooWPA6ax6t3jqTyGq73Zm1RmwppYqxaXzrtarfcTWGp5Wzx"', 'f"PASSWORD={quote(me.password)} run"',
        "logits of the last token => prediction for it", '"--api_key is required"', "f(url, token=token).size",
        "row_token = [int(m) for m in ids]", 'X_TOKEN = "<vila/sentinel>"', "https://x:${TOKEN}@h.example/a.git",
        "api_key: API key for the model", '"timePasswordChanged": 1515902314887',
        "x-t_p4_w7_fpn_giou_4conv1f_fp16_ms-crop_3x",
        "compile key 0a1fe4f5b0c7d2e3f4a5", "triton kernel key 0a1fe4f5b0c7d2e3f4a5b6c7 not in cache",
        "token verification failed for commit 0a1fe4f5b0c7d2e3f4a5", "lock key 0a1fe4f5b0c7d2e3f4a5b6 held by rank 3",
        "password authentication for me is required", "password must be 12characters", "hlo key 12345678901234567890",
        "qEnKi82wWgE_2_rJPM8EdWShs_1/000471.jpg", "key 0a1fe4f5b0c7d2e3f4a5", "cache key 0a1fe4f5b0c7d2e3f4a5b6c7",
        'forgot_password_url = "/accounts/reset"', 'assert password != ""', "token: 'two or three words'",
        "int pw = index % pooled_width;", "pub token: Option<String>,", "let token = AddedToken::from(content, 1);",
        '*token = format!(" {token}");', '"A complex special token:".into(),', 'token = vocab.get("x", "unk")',
        "{'<pad>': 50257, 'token': 30001, 'password': 9206}", "token='\u0120password' id=9206",
        "train.py:1234:INFO:root:started",
        '{"\\u0120password": 9868}', '{"entry": 3555, "secret": 3556, "43": 3557}', '"\u0120authorization": 19234',
        'pass = run_pass("fusion", "inductor_v2")', "mb16_g1ic32oc64_ih306oh304kh3sh1dh0ph0_iw306ow304kw3sw1dw0pw0_n",
        '"wandb_group": "QfkraEudexhxeVURmQHjhs_2zcejzzw"',
        'self.token = kwargs.get("token", "default")', 'tokens = x["input_ids"] or "abc12345"',
    ],
)  # fmt: skip
def test_comparisons_with_what_is_no_secret_stay(line):
    assert line == clean(line)


def test_files_in_base64_stay():
    """Whole or in lines; a line of its own may be a key."""
    made = base64.b64encode(random.Random(5).randbytes(9_000)).decode()
    lines = "\n".join(f'    b"{made[at : at + 76]}"' for at in range(0, 760, 76))

    assert clean(f'"data": "{made}"') == f'"data": "{made}"'
    assert clean(lines) == lines
    assert MASK in clean(lines.splitlines()[3])


def test_what_only_resembles_a_secret_stays_as_it_is():
    """Tokens of a text, keys of a dictionary, hashes, names of kernels and models, prose."""
    texts = [*HARMLESS, *HARMLESS_TOO]

    assert len(texts) >= 300
    assert [] == [(text, clean(text)) for text in texts if clean(text) != text]
    assert clean("\n".join(texts)) == "\n".join(texts)


@pytest.mark.parametrize(
    "line",
    [
        "scraper_key = @@", "SomeVendor-Key: @@", "mailer key_id=7 mailer_key=@@", "Dscan.login=@@", "xy-secret-@@",
        "sk_@@", "https://hooks.example.com/catch/@@", "payload of @@", "the access key @@",
        "https://h.example/v2/@@/call", "postgresql://me:@@@db/x", '"geo_key": "@@",', "token is @@.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("alphabet", [LETTERS, string.ascii_lowercase + string.digits], ids=["mixed", "small"])
def test_characters_of_chance_are_known_without_a_list_of_vendors(line, alphabet):
    """By what names them, or, where they are long, by being nothing that a person writes."""
    rng = random.Random(line)
    made = [line.replace("@@", word(rng, 28, alphabet)) for _ in range(20)]

    assert [] == [text for text in made if MASK not in clean(text)]


def test_many_links_and_long_words_cost_no_more_than_their_length():
    """Ten times the text, at most some thirty times the time."""
    part = "https://example.org/d/1Cjd6dK2eFz6DE0PKXKgKxrzTUqzzU x a_b-c_d-" + "key_" * 30 + "Zk3x9Qw1Lm5n "
    took = []
    for times in (200, 2_000):
        began = time.process_time()
        clean(part * times)
        took.append(time.process_time() - began)

    assert took[1] < 30 * took[0] + 1


LIKE_SECRETS = (
    (
        "passwd: torch.distributed.DistNetworkError: The server socket has failed to listen",
        "B.1",
        "torch.distributed.Dist",
    ),
    (
        '{"error": "x", "auth_token": "NCCL error: unhandled system error, NCCL version 2.18"}',
        "D.1.1",
        "error, NCCL version",
    ),
    ("password='CUDA out of memory. Tried to allocate 2.00 GiB'", "D.1.2", "allocate 2.00 GiB"),
)
"""Messages in places where secrets stand, the symptoms that they show, and a piece of what is masked."""


@pytest.mark.parametrize(("line", "symptom", "hidden"), LIKE_SECRETS)
def test_a_message_that_looks_like_a_secret_is_read_and_is_not_shown(line, symptom, hidden):
    snapshot = Snapshot(output=boundary.plain(line))

    found = boundary.diagnose(load(), snapshot)

    assert hidden in line
    assert hidden not in clean(line)
    assert symptom == found.symptoms[0].code
    damaged = boundary.diagnose(load(), Snapshot(output=clean(line)))
    assert (found.verdict, symptom) != (damaged.verdict, damaged.symptoms[0].code)
    assert hidden not in "".join(shown(snapshot))
    assert not any(advice.title.startswith(MASK) for advice in found.advice)


def shown(snapshot):
    """All that is shown and kept of a failure: terminal, report, JSON, card, HTML, saved states."""
    found, kept = boundary.diagnose(load(), snapshot), boundary.mask_snapshot(snapshot)
    yield to_text(found)
    yield to_markdown(found, kept)
    yield json.dumps(bundle(found))
    for made in (contract(of_text(kept, found)), LastFailure(snapshot=snapshot, diagnosis=found)):
        yield msgspec.json.encode(made).decode()
    yield to_json(Session(snapshot=snapshot).describe(snapshot.situation)).decode()


def test_no_secret_leaves_with_what_was_read_as_it_is():
    """Also where a cause quotes a piece of the line without the name that told it."""
    line = (
        "[rank3]: RuntimeError: connect to @@ failed\n"
        "[rank1]: DistBackendError: NCCL error in @@ unhandled system error\n"
        "FileNotFoundError: No such file or directory: '@@'\nModuleNotFoundError: No module named '@@'\n"
    )
    passed = []
    for kind, text, value in [*kinds(13)][::9]:
        output = boundary.plain(line.replace("@@", text))
        snapshot = Snapshot(output=output, situation=text, exception=ExceptionInfo(type="RuntimeError", message=text))
        passed += [(kind, told) for told in shown(snapshot) if any(part in told for part in parts(value))]

    assert [] == passed


def test_a_piece_of_a_secret_is_known_where_a_text_was_cut():
    output = "password=Zk3x9Qw1Lm5nRt7y\nKeyError: 'Zk3x9Qw1Lm5nRt7y'"
    snapshot = Snapshot(output=output, notes=("the value is Zk3x9Qw1Lm...", "ends in Zk3x9Qw1Lm5nRt7y"))

    assert ("the value is ***", "ends in ***") == boundary.mask_snapshot(snapshot).notes


def test_masking_twice_changes_nothing_more():
    for _, text, _ in kinds(5):
        once = clean(text)

        assert once == clean(once)


def test_what_stands_around_a_secret_is_still_there():
    assert "wandb: API_KEY=*** is refused, step 3" == clean("wandb: API_KEY=a1b2c3d4e5f6 is refused, step 3")
    assert {"password": MASK, "rank": 3} == json.loads(clean(json.dumps({"password": 'a;b"c', "rank": 3})))


def test_a_command_line_is_read_as_a_program_would():
    """A value is known by the flag before it, whatever it looks like."""
    command = ("mysql", "-uroot", "-phunter", "--password", "plain", "--token=abc", "-u", "me:word", "--lr", "1e-4")

    assert ["mysql", "-uroot", "-p***", "--password", MASK, "--token=***", "-u", "me:***", "--lr", "1e-4"] == arguments(
        command
    )
    plain = ["torchrun", "-p", "29500", "train.py", "-u", "--tokenizer", "gpt2", "--max-tokens", "4096"]
    assert plain == arguments(plain)


def test_a_secret_of_the_environment_is_known_by_its_value():
    """Also where nothing names it."""
    code = "from dtdebug.privacy.sanitize import clean; print(clean('connect to db with correcthorse-battery'))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MY_DB_PASSWORD": "correcthorse-battery"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert "connect to db with ***\n" == told.stdout
    harmless = {"PAD_TOKEN": "abcdefgh1", "API_KEY": "12345678901", "TOKENIZERS_PARALLELISM": "false", "SECRET": "/"}
    assert () == environment.values(harmless)


def test_the_table_of_vendors_is_what_it_says():
    assert len(VENDORS) >= 40
    for shapes in VENDORS.values():
        assert all(begin and allowed and least >= 10 for begin, (allowed, least) in shapes.items())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("access_token", "strong"),
        ("hub_token", "token"),
        ("pad_token", ""),
        ("tokenizer", ""),
        ("dbPassword", "strong"),
        ("key", "weak"),
        ("loss", ""),
    ],
)
def test_a_name_is_read_word_by_word(name, kind):
    assert kind == secret(name)


WORDS = (
    "re-entrant non-reentrant re-computed mixed-precision fully-sharded non-blocking de-synchronized double-buffered"
    " reentrant checkpointing recomputation static-graph find_unused_parameters use_reentrant=False pre-forward"
    " use_orig_params=True gradient_as_bucket_view sync_module_states post-backward all-reduced"
)


@pytest.mark.parametrize("word", WORDS.split())
@pytest.mark.parametrize("line", ["twice in one backward pass: {}\n      hooks", "in each pass: {} hooks run", "{}"])
def test_names_of_options_and_words_after_a_pass_stay(word: str, line: str) -> None:
    text = line.format(word)
    assert clean(text) == text


def test_a_value_named_pass_is_masked_as_before() -> None:
    assert "xk7-Qm2pLw9" not in clean("db pass: xk7-Qm2pLw9")
    assert "blue-horse-staple" not in clean("pass: blue-horse-staple")
    assert "hunter2x" not in clean("user: a pass=hunter2x")


@pytest.mark.parametrize("seed", range(20))
def test_names_and_values_with_letters_that_json_escapes_are_masked(seed: int) -> None:
    chance = random.Random(seed)
    escaped = "".join(rf"\u{ord(c):04x}" if chance.random() < 0.3 else c for c in "password")
    value = "".join(chance.choices("abcdefghkmnpqrstABCDEFGH23456789", k=14))
    written = "".join(rf"\u{ord(c):04x}" if chance.random() < 0.1 else c for c in value)
    masked = mask(rf'{{"a": "caf\u00e9", "{escaped}": "{written}", "step": 12}}')
    assert masked == rf'{{"a": "caf\u00e9", "{escaped}": "***", "step": 12}}'


@pytest.mark.parametrize("write", [repr, json.dumps])
@pytest.mark.parametrize("times", [1, 2])
def test_what_begins_a_line_of_a_quoted_text_is_masked(write: Callable[[str], str], times: int) -> None:
    rng = random.Random(times)
    forms = (
        "mysql -uroot -p@@ train", "sshpass -p @@ ssh node1", "curl -u root:@@ http://etcd:2379", "contraseña=@@",
        "mot de passe : @@", "пароль: @@", "env:\n- name: DB_PASSWORD\n  value: @@\n",
    )  # fmt: skip
    for form in forms:
        value = word(rng, 14)
        text = f"before\n{form.replace('@@', value)}\nafter"
        for _ in range(times):
            text = write(text)
        masked = mask(text)
        assert value not in masked, form
        assert "before" in masked
        assert mask(masked) == masked


def test_a_password_in_a_sentence_of_another_language_is_masked() -> None:
    value = word(random.Random(8), 12)
    for sentence in ("Das Kennwort lautet '@@'", 'Passwort ist "@@"', "mot de passe est «@@»", "contraseña es '@@'"):
        assert value not in clean(sentence.replace("@@", value)), sentence
    for sentence in ("Das Passwort ist falsch", "la contraseña es 'None'", "le mot de passe est invalide"):
        assert clean(sentence) == sentence


@pytest.mark.parametrize("begin", ["", "2 ", "[rank3]: ", "12: "])
def test_a_value_below_its_name_is_masked_behind_what_a_launcher_prints_before_each_line(begin: str) -> None:
    lines = ("env:", "- name: DB_PASSWORD", "  value: fF6PCtFzUchIrNQ", "- name: N", "  other value: 12")
    assert mask("\n".join(begin + line for line in lines)).replace(MASK, "fF6PCtFzUchIrNQ").count("fF6P") == 1
    assert "fF6P" not in mask("\n".join(begin + line for line in lines))


def test_an_identifier_in_the_path_of_a_webhook_is_masked() -> None:
    name = "454a9aa9-d801-391b-445c-f0ffa3960cd2"
    assert name not in clean(f"https://open.feishu.cn/open-apis/bot/v2/hook/{name}")
    assert name in clean(f"https://tracker.example/runs/{name}")


def test_escapes_that_hide_nothing_stay() -> None:
    text = r'{"m\u006fdel": "g\u0070t", "path": "C:\\u0041", "x": "\u001b[0m"}'
    assert mask(text) == text


_PLAIN = [
    "bridge", "copper", "lizard", "marble", "ocean", "pencil", "rocket", "silver", "tunnel", "violin", "window",
    "yellow",
]  # fmt: skip


@pytest.mark.parametrize("name", ["seed phrase: ", "MNEMONIC='", '{"mnemonic": "', "recovery phrase:\n"])
@pytest.mark.parametrize("between", [" ", ", ", "\n", "\n  1. "])
def test_the_words_from_which_a_wallet_is_recovered_are_masked(name, between):
    words = random.Random(name + between).sample(_PLAIN, len(_PLAIN))
    masked = mask(name + between.join(words) + "'\nstep 1 loss 2.0")
    assert not set(words) & set(masked.replace("'", " ").split())
    assert masked.endswith("step 1 loss 2.0")


@pytest.mark.parametrize(
    "text",
    [
        "the seed phrase of the config says which shards are read first by each rank",
        "mnemonic names for ranks: alpha bravo charlie delta echo foxtrot",
        "token=abcdEFGH1234567890xyz\ninit_process_group(backend)\nmodel_parallel_size = 4",
    ],
)
def test_words_and_lines_after_a_name_or_a_secret_survive(text):
    lines = text.splitlines()
    assert mask(text).splitlines()[1:] == lines[1:]
    assert "=" in lines[0] or mask(text) == text


@pytest.mark.parametrize("turn", ["\n", "\n    ", "\\\n", '"\n  "'])
def test_a_secret_that_is_broken_over_lines_is_masked_to_its_end(turn):
    rng = random.Random(turn)
    parts = ["".join(rng.choices("ABCDEFGHJKMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789", k=24)) for _ in range(3)]
    masked = mask(f"api_key: {turn.join(parts)}\nstep 1")
    assert not any(part in masked for part in parts)
    assert masked.endswith("step 1")


@pytest.mark.parametrize(
    ("told", "hidden"),
    [
        ({"api_address": "https://tracker.example", "api_key": "3f2b8c1e-77aa-4b52-9f6d-0c1d2e3f4a5b"}, True),
        ({"auths": {"registry.example": {"username": "u", "password": "Zk93kdl20sKd"}}}, True),
        ({"step": 12, "loss": [1.2345, 2.3456], "name": "train run number four", "rank": 3}, False),
    ],
)
def test_encoded_json_is_masked_if_it_names_a_secret(told: dict[str, object], hidden: bool) -> None:
    encoded = base64.b64encode(json.dumps(told).encode()).decode()

    assert (encoded not in mask(f"value {encoded} was refused")) is hidden


def test_no_secret_of_a_command_or_of_a_folder_name_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    token = "hf_" + word(random.Random(5), 34)
    command = ("torchrun", "train.py", "--api-key", token)
    (tmp_path / token).mkdir()
    raised = 'Traceback (most recent call last):\n  File "/a/train.py", line 10, in f\nRuntimeError: NCCL error\n'
    (tmp_path / token / "rank0.log").write_text(raised)

    Examination(command=command, observations={"gpus": ("yes", "seen")}).save()
    main(["triage", token])

    assert doctor_result.of_run(command)
    kept = {path.name: path.read_text() for path in (tmp_path / "state").iterdir() if path.is_file()}
    assert {"doctor.json", "last.json"} <= set(kept)
    assert not [name for name, text in kept.items() if token in text]


@pytest.mark.parametrize(
    "asks", ["Enter passphrase for key '/home/u/.ssh/id'", "Password for user mia", "passphrase of a b"]
)
@pytest.mark.parametrize("typed", ["Tr0ub4dor&3", "correct-horse-battery", "hunter2!"])
def test_what_was_typed_behind_a_prompt_is_masked(asks: str, typed: str) -> None:
    assert clean(f"{asks}: {typed}\nstep 1") == f"{asks}: ***\nstep 1"
    for line in (f"{asks}:", f"{asks}: prompt2 is switched off", f"{asks}: none"):
        assert clean(line) == line


def test_the_records_of_a_snapshot_are_still_records_when_a_secret_was_masked(tmp_path, capsys) -> None:
    """What is printed as JSON is built of them."""
    log = tmp_path / "train.log"
    said = f"glpat-{random.Random(4).randbytes(10).hex()}"
    log.write_text(
        f'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    f(x)\nValueError: {said}\n'
    )

    assert main(["diagnose", str(log), "--format", "json"]) == 1
    out, err = capsys.readouterr()

    assert "internal error" not in err
    assert said not in out
    assert json.loads(out)["accounts"]


def test_a_secret_in_the_name_of_a_log_is_masked(tmp_path, capsys) -> None:
    said = f"glpat-{random.Random(4).randbytes(10).hex()}"
    (tmp_path / said).mkdir()
    log = tmp_path / said / "train.log"
    log.write_text('Traceback (most recent call last):\n  File "train.py", line 3, in f\n    f(x)\nValueError: bad\n')

    for command in (["diagnose", str(log), "--format", "json"], ["triage", str(log.parent), "--format", "html"]):
        main(command)
        assert said not in "".join(capsys.readouterr())
