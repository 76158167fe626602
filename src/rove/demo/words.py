"""The vocabulary of the small web. Each list is a text of words separated by white space."""

FIRST_OF_NAME = """
amber ancient autumn birch bright calm cedar clear clover copper coral crystal dapple dawn
deep dusty early ember fallow fern frost gentle golden granite green harbor hazel hidden
hollow ivory juniper kindly lantern lark linden little lunar maple meadow mellow misty
mossy narrow noble northern oaken olive opal pebble pine quiet rapid raven river russet
saffron silver slate spruce stone sunny tidal
"""
SECOND_OF_NAME = """
acre anchor arch bank barn basin bay beacon bell bridge brook camp cape castle chapel
cliff coast corner cottage cove creek crossing dale delta dune farm fern field ford forest
forge garden gate glade grove harvest haven heath hill house island key lake lane ledge
lodge market mill moor orchard path pier point pond port press ridge shore spring street
summit valley wharf
"""
OF_PATHS = """
almond basil candle drift eagle fable ginger hinge island jasmine kettle lemon marble
nectar onion pepper quartz ribbon saddle thistle umber velvet willow xenon yarrow zephyr
"""
ENGLISH = """
the a of and to in from under over near old new small wide quiet harbour stone light water
road hill market garden winter summer morning evening people boats letters maps weather
story house bridge window kept found made told walked carried turned opened counted
remembered slowly often again before after together
"""
FRENCH = """
le la les un une de du et à dans sous près vieux petite grande été hiver forêt rivière
marché jardin fenêtre château garçon élève théâtre lumière première dernière après déjà
très où être avoir allait venait gardé trouvé ouvert français naïf île
"""
RUSSIAN = """
и в на под над около старый новый маленький широкий тихий гавань камень свет вода дорога
холм рынок сад зима лето утро вечер люди лодки письма карты погода рассказ дом мост окно
нашли сделали шли несли открыли медленно часто снова вместе
"""
JAPANESE = """
古い 新しい 小さな 静かな 港 石 光 水 道 丘 市場 庭
冬 夏 朝 夕方 人々 船 手紙 地図 天気 物語
家 橋 窓 見つけた 作った 歩いた 運んだ 開いた ゆっくり
よく また 一緒に カフェ テレビ ノート
"""
GREEK = """
και το στη από παλιό νέο μικρό ήσυχο λιμάνι πέτρα φως νερό δρόμος λόφος αγορά κήπος
χειμώνας καλοκαίρι πρωί βράδυ άνθρωποι βάρκες γράμματα καιρός ιστορία σπίτι γέφυρα
παράθυρο ☀ naïve
"""
