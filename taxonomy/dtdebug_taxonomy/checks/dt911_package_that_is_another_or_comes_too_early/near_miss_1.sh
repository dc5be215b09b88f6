# from our own index
pip install --index-url https://wheels.example.org/simple apex
echo pip install apex
cd apex && python setup.py install
