from test_resident_pages import *
import subprocess
def test_x(answered, memfs_on_path, tmp_path):
    (t := tmp_path/"t").mkdir()
    script='''
exec 2>&1
memfs init notes
cd notes
memfs remember "We chose PostgreSQL for transactions" --tag database --id use-postgresql
memfs recall "which database did we choose for a transaction"
sed -i.bak 's/for transactions/for everything that needs transactions/' ContextMemory/memories/semantic/*/use-postgresql.yaml
rm ContextMemory/memories/semantic/*/*.bak
memfs recall postgres
memfs commit -m "Say what for"
memfs log use-postgresql
memfs restore use-postgresql --from HEAD~1
echo ====1
memfs recall postgres
memfs list
memfs show use-postgresql
memfs recall postgres
memfs recall postgresql
memfs recall transactions
sleep 3
echo ===cold
KIT_RESIDENT_LOG= MEMFS_RESIDENT=off memfs recall postgres
cat ContextMemory/memories/semantic/*/use-postgresql.yaml
git log --format=%s
git show HEAD~1
'''
    print(subprocess.run(["sh","-c",script],cwd=t,capture_output=True,text=True).stdout)
    print(answered.read_text())
    assert 0
