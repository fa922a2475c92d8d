"""Closed lists of words: what people do, trade, build, and quarrel about."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


OCCUPATIONS = _words(
    "poet, novelist, playwright, composer, painter, sculptor, architect, engineer, clockmaker, physician, "
    "surgeon, botanist, zoologist, geologist, astronomer, mathematician, chemist, cartographer, navigator, "
    "admiral, general, diplomat, jurist, banker, merchant, printer, philosopher, historian, linguist, theologian, "
    "explorer, mountaineer, horticulturist, brewer, weaver, goldsmith, glassmaker, organ builder, singer, "
    "violinist, actor, dancer, journalist, photographer, inventor, shipwright, midwife, falconer, beekeeper, "
    "mining engineer, meteorologist, archaeologist, bookbinder, choirmaster, chess player, fencing master, "
    "lexicographer, pharmacist, hydrologist, instrument maker"
)
TRADES = _words(
    "salt making, wool weaving, silver mining, shipbuilding, glassblowing, cheese making, paper making, tin "
    "mining, amber carving, bell founding, beekeeping, barge building, brewing, brick making, candle making, "
    "charcoal burning, cider pressing, copper smelting, coral diving, dyeing, eel fishing, felt making, flax "
    "growing, fur trading, herring fishing, horse breeding, ice cutting, indigo growing, ironworking, kite "
    "making, lace making, lens grinding, lime burning, linen weaving, marble quarrying, mushroom growing, oyster "
    "farming, pearl fishing, peat cutting, pepper growing, pottery, printing, rope making, saffron growing, silk "
    "spinning, slate quarrying, soap boiling, spice trading, tanning, tea growing, timber rafting, wine growing, "
    "walnut growing, whetstone quarrying"
)
HABITATS = _words(
    "alder swamps, alpine meadows, bamboo thickets, beech forest, blanket bogs, boulder fields, brackish lagoons, "
    "cedar forest, chalk downs, cloud forest, coastal dunes, dry steppe, fir forest, flooded grassland, gravel "
    "banks, heathland, hot springs, juniper scrub, kelp beds, larch forest, limestone caves, mangroves, oak "
    "woods, peat bogs, pine barrens, reed beds, river gorges, rocky shores, salt marshes, sandstone cliffs, scree "
    "slopes, sea stacks, spruce forest, stony desert, tussock grassland, water meadows, willow carrs, wooded "
    "islands"
)
EMBLEMS = _words(
    "a blue anchor, a silver heron, a golden key, a red lantern, three oak leaves, an open book, a black ram, a "
    "white tower, two crossed oars, a green serpent, a rising sun, a copper beehive, a winged wheel, a broken "
    "chain, an iron gate, a sleeping lion, a crescent and star, a burning torch, a leaping salmon, a stone "
    "bridge, an hourglass, a crowned owl, five arrows, a sheaf of wheat, a plumb line, a glass eye, a walnut "
    "tree, a pair of scales, a ship in full sail, a hand holding a feather, a double spiral, a grey wolf, a bunch "
    "of grapes, a compass rose, an empty throne, a kingfisher, a millstone, a violet thistle"
)
FORMS = _words(
    "novel, epic poem, comic opera, tragic opera, string quartet, oil painting, marble relief, stage comedy, "
    "verse drama, song cycle, travelogue, memoir, philosophical dialogue, symphony, ballet, fresco, tapestry, "
    "woodcut series, collection of short stories, novella, oratorio, satire, historical chronicle, puppet play, "
    "organ mass, piano sonata, bronze statue, altarpiece, radio play, children's book, cookery book, garden "
    "treatise, atlas, herbal, detective novel, watercolour, stained-glass window, violin concerto, shadow play, "
    "libretto"
)
THEMES = _words(
    "the loss of a brother, a failed harvest, a forbidden marriage, the building of a bridge, a journey by "
    "sledge, the life of a lighthouse keeper, a disputed inheritance, a year without summer, the education of a "
    "thief, an outbreak of fever, a wager between two merchants, the return of a deserter, the taming of a river, "
    "a stolen bell, the trial of a healer, a long siege, the memory of a drowned village, a feud between "
    "glassmakers, the vanity of kings, a mistaken identity, the last days of a monastery, the hunt for a white "
    "stag, a winter among miners, the invention of a language, a duel that never happens, the solitude of old "
    "age, a runaway circus, a map that proves false, the courtship of a beekeeper, a strike of weavers, an "
    "unfinished cathedral, the voyage of an exile, a garden in wartime, a blind clockmaker, the price of silver, "
    "a storm at midsummer, the schooling of a prince, a letter that arrives too late"
)
CAUSES = _words(
    "fishing rights, the salt tax, river tolls, the succession to the throne, grazing land, the release of "
    "prisoners, the course of a border, the price of grain, freedom of worship, silver mines, water rights, "
    "harbour dues, the rights of guilds, unpaid soldiers, the rule of the calendar, timber rights, the currency, "
    "the abolition of serfdom, a broken engagement, the ownership of an island, the language of schools, the "
    "forest law, trade with the islands, the upkeep of dykes, the election of judges, road tolls, the tea "
    "monopoly, the whale fishery, the census, the pilgrim road, conscription, the right of passage, the amber "
    "trade, weights and measures, the poor law, the opening of the canal, the closing of the monasteries, the "
    "design of the flag"
)
CARGOES = _words(
    "timber, grain, coal, wine, salt, wool, tea, silk, marble, copper ore, tar, hides, sugar, cotton, iron, "
    "slate, olive oil, furs, ice, dried fish, spices, tobacco, paper, glass, horses, pepper, bricks, cheese, "
    "rope, cider, amber, guano, lamp oil, porcelain, rice, cork, indigo, mail, machine parts, printed books"
)
FEATURES = _words(
    "grey, ringed, spotted, crested, hooded, pale, dusky, long-tailed, red-bellied, white-browed, lesser, "
    "greater, mottled, golden, slender, banded, bearded, blue-backed, horned, masked, tawny, velvet, striped, "
    "marbled, pygmy, broad-footed, black-eared, copper, silver, whistling"
)
CREATURES = _words(
    "finch, warbler, heron, plover, owl, bunting, shrike, marten, vole, hare, bat, otter, fox, deer, lynx, shrew, "
    "lizard, gecko, viper, newt, toad, frog, tortoise, carp, trout, goby, eel, crab, crayfish, snail, beetle, "
    "moth, hawkmoth, cricket, dragonfly, spider, mantis, bumblebee, salamander, grouse"
)
ADJECTIVES = _words(
    "Ardent, Silent, Northern, Golden, Faithful, Restless, Grey, Crimson, Distant, Patient, Bold, Merry, Lonely, "
    "Gallant, Second, Winter, Amber, Hollow, Iron, Royal, Wandering, Emerald, Early, Stubborn, Bright, Solemn, "
    "Southern, Vigilant"
)
NOUNS = _words(
    "Heron, Lantern, Orchard, Compass, Falcon, Harvest, Mirror, Bell, Swallow, Anchor, Garden, Thistle, Crown, "
    "Meadow, Star, Weaver, Shepherd, Ferryman, Candle, Bridge, River, Wolf, Sparrow, Throne, Letter, Clock, "
    "Orphan, Cartographer, Daughter, Widow, Gate, Pilgrim, Salt Road, Glass House, Mill, Tower"
)
VESSELS = _words(
    "schooner, frigate, brig, steamship, icebreaker, survey ship, whaler, clipper, barque, paddle steamer, cargo "
    "ship, training ship, cutter, airship, ferry, sloop"
)
SCHOOLS = _words("University, College, Polytechnic, Academy")
HOUSES = _words(
    "Shipyard, Trading Company, Observatory, Museum, Brewery, Bank, Botanical Garden, Press, Ironworks, Guild, "
    "Conservatory, Library, Railway, Glassworks, Opera, Institute"
)
CLASHES = _words("Battle, Siege, Revolt, Treaty, Council, Festival, Congress, Expedition, Strike, Exhibition")
COINS = _words("mark, crown, florin, talent, denar, lira, thaler, groat, ducat, obol")
RANGES = _words("Mountains, Hills, Alps, Range, Massif")
