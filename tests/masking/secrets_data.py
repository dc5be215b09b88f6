"""Secrets of many kinds, made anew for each test, the places where they turn up, and harmless texts that resemble them.

Nothing here is a credential of anybody: all values come from a random generator with a fixed seed.
"""

# ruff: noqa: E501 - one kind a line

import base64
import json
import random
import string
import tomllib
from pathlib import Path

import dtdebug.privacy.redact

LETTERS = string.ascii_letters + string.digits
VENDORS = tomllib.loads((Path(dtdebug.privacy.redact.__file__).parent / "vendors.toml").read_text(encoding="utf-8"))
NAMES = (
    "password", "PASSWORD", "db_password", "PGPASSWORD", "MYSQL_ROOT_PASSWORD", "dbPassword", "passwd", "pwd", "passphrase",
    "api_key", "API_KEY", "WANDB_API_KEY", "COMET_API_KEY", "apiKey", "x-api-key", "access_key", "AWS_SECRET_ACCESS_KEY",
    "aws_session_token", "secretAccessKey", "secret_key", "client_secret", "clientSecret", "private_key", "AccountKey",
    "SharedAccessKey", "encryption_key", "signing_key", "HF_TOKEN", "auth_token", "authToken", "access_token", "refresh_token",
    "id_secret", "X-Auth-Token", "PRIVATE-TOKEN", "SLACK_BOT_TOKEN", "credentials", "JWT_SECRET", "SECRET_KEY_BASE", "smtp_pass",
)  # fmt: skip


def word(rng, size, alphabet=LETTERS):
    """Random characters, at least one digit."""
    return "".join(rng.choices(alphabet, k=size - 1)) + rng.choice(string.digits)


def kinds(seed):
    """(what it is, text that holds the secret, the secret)."""
    rng = random.Random(seed)
    for vendor, shapes in VENDORS.items():
        for begin, (allowed, least) in shapes.items():
            alphabet = {"A": string.ascii_uppercase, "a": string.ascii_lowercase}
            letters = string.digits if "0-9" in allowed else ""
            for span in ("A-Z", "a-z", "A-F", "a-f"):
                if span in allowed:
                    letters += (
                        alphabet[span[0]] if span[2] in "Zz" else "abcdef".upper() if span[0] == "A" else "abcdef"
                    )
            secret = begin + "".join(rng.choices(letters, k=least + 6 if least != 16 else 16))
            yield f"{vendor} {begin}", secret, secret
    for name in NAMES:
        secret = word(rng, rng.randint(8, 24))
        yield name, f"{name}={secret}", secret
    odd = [
        word(rng, 6) + ";" + word(rng, 6),
        word(rng, 5) + "'" + word(rng, 6),
        "".join(rng.choices(string.digits, k=9)),
        "correct-horse-battery",
    ]
    for secret in odd:
        yield f"password like {secret}", f"password={secret}", secret
    for scheme in ("https", "postgresql", "redis", "mongodb+srv", "amqp", "mysql+pymysql", "ftp", "s3"):
        secret = word(rng, 12)
        yield f"{scheme} address", f"{scheme}://user:{secret}@host.example/db", secret
    secret = word(rng, 30)
    yield "user of an address", f"https://{secret}@git.example.org/a.git", secret
    for header in (
        "Authorization: Bearer {}",
        "Authorization: Basic {}",
        "Authorization: token {}",
        "Cookie: session={}",
        "Set-Cookie: sid={}; Path=/",
    ):
        secret = word(rng, 30)
        yield header, header.format(secret), secret
    secret = base64.b64encode(f"user:{word(rng, 12)}".encode()).decode()
    yield "Docker's login", json.dumps({"auths": {"registry.example": {"auth": secret}}}), secret
    secret = word(rng, 10)
    yield ".netrc", f"machine api.wandb.ai login user password {secret}", secret
    yield "connection string", f"Server=db;User Id=sa;Password={secret};Encrypt=yes", secret
    for query in ("X-Amz-Signature", "X-Goog-Signature", "sig", "Signature", "X-Amz-Security-Token"):
        secret = word(rng, 44)
        yield f"presigned {query}", f"https://bucket.example/model.pt?Expires=86400&{query}={secret}", secret
    for line in (
        "--password {}",
        "--token={}",
        "--api-key {}",
        "--hub_token {}",
        "curl -u user:{} https://a.example",
        "mysql -u root -p{} db",
        "wandb login {}",
        "sshpass -p {} ssh host",
        "docker login -u me -p {} registry.example",
    ):
        secret = word(rng, 20)
        yield line, line.format(secret), secret
    secret = "eyJhbGciOiJIUzI1NiJ9." + word(rng, 40) + "." + word(rng, 43)
    yield "signed token", secret, secret
    secret = "MII" + word(rng, 90)
    yield "private key", f"-----BEGIN RSA PRIVATE KEY-----\n{secret}\n-----END RSA PRIVATE KEY-----", secret
    for size in (32, 40, 48, 64):
        secret = word(rng, size)
        yield f"{size} characters without a name", secret, secret


def places(text):
    """The same in a log line, JSON, a repr, a traceback, an argv, a notebook cell, an escaped string."""
    yield "log line", f"2026-01-01 10:00:00 INFO rank 0: {text} step 3\n"
    yield "end of a line", f"before\n{text}\nafter\n"
    yield "JSON", json.dumps({"message": text, "rank": 0})
    yield "repr", repr({"line": text, "n": 1})
    yield "argv", repr(["python", "train.py", *text.split(" ")])
    yield "traceback", f'  File "train.py", line 3, in main\n    run({text!r})\nValueError: {text}\n'
    yield "cell", f"!{text}\nimport torch\n"
    yield "JSON in JSON", json.dumps({"body": json.dumps({"line": text})})


HARMLESS = """
token_type_ids=tensor([[0, 0, 1]])
tokenizer=AutoTokenizer.from_pretrained("gpt2")
tokenizer: GPT2TokenizerFast
tokenizer_name: meta-llama/Llama-3.1-8B-Instruct
pad_token=<|endoftext|>
pad_token = tokenizer.eos_token
"pad_token": "<|finetune_right_pad_id|>"
"eos_token": "<|eot_id|>"
"bos_token": "<s>"
eos_token_id=128009
pad_token_id: 50256
special_tokens_map.json
special_tokens_map={'eos_token': '</s>'}
TOKENIZERS_PARALLELISM=false
huggingface/tokenizers: The current process just got forked
token: index out of range in self
RuntimeError: token: index out of range
IndexError: index out of range in self, token=5
max_tokens=4096
max_new_tokens: 512
num_tokens=1_000_000
tokens per second: 12345.6
tokens/s 1200
tokens: 1234567890
total_tokens=123456789012
n_tokens = 8192
tokens_per_gpu=262144
next_token = logits.argmax(-1)
last_token: 42
prompt_tokens=17 completion_tokens=233
return_token_type_ids=True
sk-learn-compatible-estimators
sk-learn-1.5.2-cp311-cp311-manylinux_2_17_x86_64
secret sauce
the secret is to warm up slowly
no secrets here
basic initialization failed
Basic usage: torchrun train.py
bearer of bad news
commit 0a1fe4f5b0c7d2e3f4a5b6c7d8e9f0a1b2c3d4e5
HEAD is now at adf8d5a End the ranks
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
md5 d41d8cd98f00b204e9800998ecf8427e
550e8400-e29b-41d4-a716-446655440000
GPU-5b0f3c2a-1d2e-4f5a-8b9c-0d1e2f3a4b5c
MIG-7e2f1a30-52ab-5c11-90de-1f2a3b4c5d6e
task-1234567890123456789
a://b:80/c
tcp://10.0.0.1:29500
rdzv_endpoint=node-0:29400
http://localhost:8888/lab
https://github.com/pytorch/pytorch/issues/54059
git@github.com:pytorch/pytorch.git
ssh://git@github.com/pytorch/pytorch.git
https://git@github.com/pytorch/pytorch.git
s3://bucket/path/to/checkpoint-5000
user@node-0:/home/user
KeyError: 'state_dict'
KeyError: "model.layers.0.self_attn.q_proj.weight"
key=value
keys: ['a', 'b', 'c']
missing_keys=['lm_head.weight']
unexpected_keys: []
key_padding_mask=None
query, key, value = qkv.chunk(3)
num_key_value_heads=8
key_states: torch.Size([1, 8, 128, 64])
past_key_values=None
cache_key=step_100
primary_key: id
sort_key = lambda x: x[1]
store key 'worker/3' not found
Key: default_pg/0//cuda//0 not set
forward pass: 12.3 ms
backward_pass=45.6
first_pass: True
passed: 12 failed: 0
pass rate: 98.5
bypass=True
compass: north
password=None
password: None
password = os.environ["DB_PASSWORD"]
password=getpass.getpass()
password: ${DB_PASSWORD}
password: <your password>
token=None
token=True
token=args.token
token = os.environ.get("HF_TOKEN")
token=${HF_TOKEN}
token: <your token>
use_auth_token=True
use_auth_token=None
api_key=os.getenv("WANDB_API_KEY")
api_key: null
secret: false
auth: none
auth=None
author: Jane Doe
authors = ["a", "b"]
authority: 3
authentication failed for user
Authorization failed
authorization: denied
cookie: disabled
session: 3
session started
session_id=3
signature: (x, y) -> z
inspect.signature(forward)
sig=0.05
sigma=0.1234
signal=SIGKILL
design=v2
mask_token: [MASK]
"mask_token": "<mask>"
cls_token='[CLS]'
sep_token: [SEP]
image_token_id=32000
image_token: <image>
decoder_start_token_id=0
forced_bos_token_id=None
suppress_tokens=[1, 2, 7]
begin_suppress_tokens=[220, 50257]
skip_special_tokens=True
add_special_tokens: false
added_tokens.json
token_ids: [1, 2, 3]
token_embedding.weight
model.embed_tokens.weight: torch.Size([32000, 4096])
embed_tokens=ParallelEmbedding
token_count: 77
loss per token: 2.345
bits_per_token=1.23
nll_per_token: 3.4567
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)
_ZN3c1016detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>
ampere_fp16_s16816gemm_fp16_128x256_ldg8_f2f_stages_64x3_tn
sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1
/usr/local/lib/python3.11/dist-packages/torch/distributed/distributed_c10d.py
/home/user/.cache/huggingface/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e39f249a16976918f6564b8830bc894c89659/config.json
torch-2.13.0+cu126.cxx11.abi-cp311-cp311-linux_x86_64.whl
nvidia_cublas_cu12-12.6.4.1-py3-none-manylinux2014_x86_64.whl
NVIDIA-A100-SXM4-80GB
NVIDIA H100 80GB HBM3
run-20260101_101112-3k9x8z2q
wandb: Run data is saved locally in wandb/run-20260101_101112-3k9x8z2q
TORCH_NCCL_ASYNC_ERROR_HANDLING=1
NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2,mlx5_3
NCCL_SOCKET_IFNAME=^docker0,lo
CUDA_VISIBLE_DEVICES=0,1,2,3
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3
Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)
python -u train.py --lr 1e-4 --tokenizer gpt2 --max-tokens 4096
torchrun --nproc-per-node 8 --rdzv-id job123 train.py
srun -u --ntasks 16 python train.py
docker run -p 8888:8888 image
mkdir -p checkpoints/run1
ps -u root
rank 0: step 100: loss 0.1234 grad_norm 1.234 lr 1e-4
GRADIENT_ACCUMULATION_STEPS=8
DistributedDataParallel(module=TransformerForSequenceClassification)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError
[rank3]:[E ProcessGroupGloo.cpp:138] Rank 3 is stuck
MASTER_ADDR=node-0.cluster.local
learning_rate=0.00012345678901234567
seed: 12345678901234567890
timestamp=1767261072.123456
0x7f1234567890abcdef
monkey: banana
keyboard interrupt
turkey=roast
hotkey: ctrl-c
""".strip().split("\n")  # fmt: skip

WRITTEN = (
    "export OPENAI_API_KEY=@@",
    "export GROQ_API_KEY='@@'",
    "os.environ['NEPTUNE_API_TOKEN'] = '@@'",
    'os.environ["HUGGING_FACE_HUB_TOKEN"]="@@"',
    "login(token='@@')",
    "wandb.login(key='@@')",
    'huggingface_hub.login("@@")',
    'HfApi(token="@@")',
    "boto3.client('s3', aws_access_key_id='x', aws_secret_access_key='@@')",
    "aws_secret_access_key = @@",
    "[default]\naws_access_key_id = AKIAABCDEFGHIJKLMNOP\naws_secret_access_key = @@",
    "psql postgresql://me:@@@db:5432/x",
    "MONGO_URI=mongodb://root:@@@m0,m1,m2/?replicaSet=rs",
    "DATABASE_URL=postgres://u:@@@ec2-1.compute.amazonaws.com:5432/d",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@@==;EndpointSuffix=core.windows.net",
    "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@@=",
    "?sv=2022-11-02&ss=b&srt=sco&sp=rl&se=2026&sig=@@%3D",
    "X-Api-Key: @@",
    "x-goog-api-key: @@",
    "-H 'Authorization: Bearer @@'",
    "headers={'Authorization': 'Bearer @@'}",
    'headers={"Authorization": f"token @@"}',
    "{'X-Vault-Token': '@@'}",
    "VAULT_TOKEN=@@",
    "password='@@'",
    "passwd: @@",
    "PASS=@@",
    "--db-password=@@",
    "--wandb_api_key @@",
    "--wandb-key @@",
    "redis-cli -a @@ ping",
    "mysqldump --password=@@ db",
    "mysql --user=root --password @@",
    "PGPASSWORD=@@ psql",
    "sshpass -p '@@' ssh a",
    "git clone https://oauth2:@@@gitlab.com/a/b.git",
    "git clone https://x-access-token:@@@github.com/a/b",
    "pip install --index-url https://__token__:@@@pypi.example/simple x",
    "//registry.npmjs.org/:_authToken=@@",
    "npm config set _auth @@",
    "kubectl create secret generic a --from-literal=password=@@",
    "curl -u admin:@@ http://a",
    "curl --user admin:@@ http://a",
    'curl -H "X-Auth-Token: @@" a',
    "docker login --password @@ a",
    "echo @@ | docker login --password-stdin",
    "Cookie: sessionid=@@",
    "cookies={'session': '@@'}",
    "Set-Cookie: JSESSIONID=@@; Path=/",
    "csrftoken=@@",
    "JWT_SECRET_KEY=@@",
    "FLASK_SECRET_KEY: @@",
    "'secret': '@@'",
    "secret_key_base: @@",
    "client_secret=@@&grant_type=x",
    "refresh_token=@@&client_id=1",
    '"access_token":"@@"',
    "'refreshToken': '@@'",
    '"apiSecret": "@@"',
    "api-secret: @@",
    "consumer_secret = '@@'",
    "twilio_auth_token=@@",
    "SENTRY_DSN=https://@@@o1.ingest.sentry.io/5",
    "slack_webhook=https://hooks.slack.com/services/T0/B0/@@",
    "machine github.com\n  login me\n  password @@",
    'smtp_password: "@@"',
    "ftp://u:@@@h/f",
    "LDAP_BIND_PASSWORD=@@",
    "ldapsearch -D cn=a -w @@",
    "AUTH_TOKEN: @@",
    "X-Plex-Token=@@",
    "bot_token: '@@'",
    "ENCRYPTION_KEY=@@",
    "MASTER_KEY=@@",
    "NGC_API_KEY=@@",
    "NGC_CLI_API_KEY=@@",
    "RAY_REDIS_PASSWORD=@@",
    "--redis-password='@@'",
    "ray start --redis-password=@@",
    "MLFLOW_TRACKING_PASSWORD=@@",
    "MLFLOW_TRACKING_TOKEN=@@",
    "CLEARML_API_SECRET_KEY=@@",
    "clearml_secret_key: @@",
    "COMET_API_KEY = '@@'",
    "jupyter lab --ServerApp.token=@@",
    "http://localhost:8888/?token=@@",
    "http://127.0.0.1:8888/lab?token=@@",
    "--NotebookApp.token='@@'",
    "c.ServerApp.password = '@@'",
    "user=me password=@@ host=x",
    "host=x user=me password='@@' dbname=d",
    "Pwd=@@;",
    'Password="@@";Timeout=3',
    "<password>@@</password>",
    "token @@",
    "password is @@",
    "your api key is @@",
    "DTDEBUG_TOKEN=@@",
    "TORCH_SECRET=@@",
    "KAGGLE_KEY=@@",
    '{"username":"a","key":"@@"}',
    "GITHUB_TOKEN=@@",
    "CI_JOB_TOKEN=@@",
    "CODECOV_TOKEN=@@",
    "TWINE_PASSWORD=@@",
    "UV_PUBLISH_TOKEN=@@",
    "CONDA_TOKEN=@@",
    "https://conda.anaconda.org/t/@@/ch",
    "AZURE_CLIENT_SECRET=@@",
    "AZURE_STORAGE_KEY=@@",
    "GOOGLE_API_KEY=@@",
    "GEMINI_API_KEY=@@",
    "DATABRICKS_TOKEN=@@",
    "SNOWFLAKE_PASSWORD=@@",
    "SNOWFLAKE_PRIVATE_KEY_PASSPHRASE=@@",
    "STRIPE_SECRET=@@",
    "PAYPAL_CLIENT_SECRET=@@",
    "TELEGRAM_BOT_TOKEN=@@",
    "DISCORD_TOKEN=@@",
    "ssh -o password=@@",
    "apikey @@",
    "Token: @@",
    "X-Amz-Credential=@@",
    "AWSAccessKeyId=@@&Signature=abc",
    "Proxy-Authorization: Basic @@==",
    "http_proxy=http://me:@@@proxy:3128",
    '{"auth":"@@"}',
    "userpass=@@",
    "DB_PASS: @@",
    "MINIO_ROOT_PASSWORD=@@",
    "MINIO_SECRET_KEY=@@",
    "S3_SECRET=@@",
    "secretKey: @@",
    "accessKeySecret=@@",
    "AccessKeySecret: '@@'",
    "TENCENT_SECRET_KEY=@@",
    "WECHAT_SECRET=@@",
    "DINGTALK_SECRET=@@",
    "access_token=@@",
    "qwen_api_key=@@",
    "DASHSCOPE_API_KEY=@@",
    "ARK_API_KEY=@@",
)
"""Lines as people write them; `@@` stands for the secret."""

HARMLESS_TOO = """
loss_key: train_loss
monitor_key=val_acc
metric key 'val/loss' not found
KeyError: 'token_type_ids'
tokenizer.pad_token_id = tokenizer.eos_token_id
model.config.pad_token_id=model.config.eos_token_id
Setting `pad_token_id` to `eos_token_id`:50256 for open-end generation.
Token indices sequence length is longer than the specified maximum sequence length (1025 > 1024)
token_dropout: 0.1
tokens_seen=131072000
tokens_per_sec: 54321.9
tok/s=1234
token: 'Hello'
token: "▁the"
token=' world'
Special tokens have been added in the vocabulary
unk_token="<unk>", bos_token="<s>"
additional_special_tokens=["<|im_start|>", "<|im_end|>"]
use_fast_tokenizer=True
tokenizer_path=/data/tokenizers/llama3/tokenizer.model
passed=True
pass_through: false
password required
Password authentication is disabled
enter password:
invalid password for user root
secret: not found
Error: secret "hf-token" not found
secretName: hf-token
secretKeyRef: name
kubernetes.io/service-account-token
token bucket size 100
access token expired
API key not found. Please set WANDB_API_KEY
wandb: ERROR api_key not configured (no-tty). call wandb login [your_api_key]
wandb: Currently logged in as: someone. Use `wandb login --relogin` to force relogin
wandb: Paste an API key from your profile and hit enter
huggingface_hub.errors.LocalTokenNotFoundError: Token is required (`token=True`), but no token found.
401 Client Error: Unauthorized for url: https://huggingface.co/api/models
Cookie Monster dataset
sessions=12
session_timeout: 30
session_dir=/tmp/ray/session_2026-01-01_10-00-00_123456_789
ray session_latest
auth_method=none
authenticator: externalbrowser
signature=(Tensor, Tensor)
def forward(self, key, value): pass
key = f"layers.{i}.weight"
for key, value in state_dict.items():
key=(0, 1)
dedup_key: abcdef
pin_memory=True
pin: false
ping=12ms
pinned_memory: 4096
dsn: None
sid: 5
resid=0.1
checkpoint-0a1fe4f5b0c7d2e3f4a5b6c7d8e9f0a1b2c3d4e5
model-00001-of-00004.safetensors
events.out.tfevents.1767261072.node-0.12345.0
core.python.1000.5f0e1d2c3b4a59687766554433221100.12345.1767261072000000
/tmp/torchelastic_k3j2h1g0/none_abcd1234/attempt_0/0/error.json
/tmp/pymp-8x7c6v5b
/var/lib/docker/overlay2/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08/merged
ncclUniqueId 0x1234abcd5678ef90
comm 0x55d0c8a0b2c0 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 commId 0x9f86d081884c7d65
NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8
void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(T1::Params)
triton_poi_fused__to_copy_add_mul_native_layer_norm_12
_flash_attn_forward_sm90_hdim128_bf16_causal
at::_ops::_scaled_dot_product_flash_attention_for_cpu_backward::redispatch
torch::autograd::PyNode::apply(std::vector<at::Tensor>&&)
c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout
_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFvvEEEEEE6_M_runEv
__kmpc_fork_call_wrapper_0x7f12ab34cd56
MistralForCausalLM(model=MistralModel(embed_tokens=Embedding(32000, 4096)))
Qwen2_5_VLForConditionalGeneration
Meta-Llama-3.1-405B-Instruct-FP8
mixtral-8x7b-instruct-v0.1.Q4_K_M.gguf
DeepSeek-R1-Distill-Qwen-32B-bnb-4bit
microsoft/Phi-3-mini-128k-instruct
stabilityai/stable-diffusion-xl-base-1.0
TransformerEngineBaseModule2DParallelFP8Linear
H100PCIe80GBHBM2e
conda-forge/linux-64::pytorch-2.5.1-cuda126_py311h1234567_200
build py3.11_cuda12.4_cudnn9.1.0_0
cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64
libtorch_cuda.so(_ZN5torch4cuda4nccl6detail10all_reduceE+0x1a2)
slurmstepd: error: *** STEP 12345.0 ON node-0 CANCELLED ***
SLURM_JOB_ACCOUNT=project_465000123
SLURM_STEP_NODELIST=node-[0-3]
TORCHELASTIC_RUN_ID=9b2f7c1e-5d3a-4b8f-8e6d-0c1a2b3c4d5e
MASTER_PORT=29500
torchrun --rdzv_id 3f9c --rdzv_backend c10d --rdzv_endpoint host:29400
python train.py -u --port 8080
python -m torch.distributed.run --nproc_per_node=8 train.py --per_device_train_batch_size 4
deepspeed --hostfile hosts train.py --deepspeed ds_config.json
docker run -u 1000:1000 image
docker run -p 8080:80 -p 443:443 image
ssh -p 2222 user@host
rsync -av -e "ssh -p 22" a b
mkdir -p /data/passwords
cp -u a b
unzip -p model.zip config.json
ps -p 1234 -o pid
bsub -q gpu python train.py
chown -u user:group file
last_key=model.norm.weight
public_key: ssh-ed25519
keyfile=/etc/key.pem
sort_keys=True
foreign_key: users.id
hash: 9f86d081
etag="5d41402abc4b2a76b9719d911017c592"
seed=1234567890
nonce=1
digest: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
1767261072.123456 rank0 step=100
http://node-0:6006/#scalars
https://wandb.ai/team/project/runs/3k9x8z2q
https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/model.safetensors
https://docs.pytorch.org/docs/stable/notes/cuda.html#environment-variables
file:///home/user/run.ipynb
nccl://10.0.0.1:1234
env://
tcp://[::1]:29500
mailto:user@example.org
bearer: None
Basic block in ResNet: BasicBlock(64, 64)
basic auth is off
credentials: false
credential helper not found
authors: A. Person
sign=-1
signed: int8
design_sig: 3
assignment=2
passage=4
compass=5
surpass: 1
tokenwise=mean
tokenized_dataset: Dataset({features: ['input_ids'], num_rows: 1000})
untokenized=12
subtoken=3
cryptic message
encryption: none
encrypted=False
keyspace=5
keyboard=us
AutoModelForSeq2SeqLMWithHydraValueHead
"integrity": "sha512-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4cXV4Zm9vYmFyYg=="
https://drive.example.com/file/d/1c5ZTuT7J08wLUoVZ2KkUs7VdZuJ86ZqA/view?usp=sharing
https://drive.example.com/open?id=1rpK8CzAAirq9sWZhe9nlfvxMF1dRgFbF
gdown --id 1vqz26D3yn7OXS2vbfYxfSnpLS6m6tOFP
--initial_peers /ip4/127.0.0.1/tcp/30001/p2p/Qmbh7opLJxFCtY22XqwETuo6bnWqijs76YXz7D69MBWEXq
/tmp/torchinductor_root/4m/c4mqk2n7x5vj3wz6ybt4l2hgf5s7d3pq9rka8e6ucm2oxi4tznvb.py", line 3, in call
python -m deepspeed.launcher.launch --world_info=eyJ3b3JrZXItMCI6IFswXSwgIndvcmtlci0xIjogWzBdfQ== train.py
data:image/svg+xml;base64,PD94bWwgdmVyc2lvbj0iMS4wIiBlbmNvZGluZz0iVVRGLTgiIHN0YW5kYWxvbmU9
beaker dataset fetch 01J4MT10JPQ8MFA41F2AXGFYJ9
state[merged_token] = new_id
hf[hf_key] = value
storage_key = "non_cond_frame_outputs"
client_key='default'
idempotency_key = f"client-{uuid.uuid4()}"
api_key=openai_api_key,
HfApi(token=training_args.hub_token)
self.eod_token = tokenizer.eod
token=data_args.token,
"nodes_pass": 0
mul_pass = 1
forward pass: skipped.
GOOGLE_APPLICATION_CREDENTIALS=/data/google/credentials.json
secrets: inherit
API_KEY="YOUR_API_KEY"
OPENAI_API_KEY=sk-XXXXXX
wandb login $WANDB_API_KEY
--private-key PRIVATE_KEY
The token to use as HTTP bearer authorization for remote files
"Seconds to first token": [0.6533610639999097]
github-token: ${{secrets.GITHUB_TOKEN}}
-H "Authorization: Bearer $BUILDKITE_API_TOKEN"
redis://[:password@]host:6379/db
XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
[c for c in 'abcdefghijklmnopqrstuvwxyz']
""".strip().split("\n")
