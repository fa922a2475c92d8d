"""How facts about countries, regions and settlements are worded, and remarks without facts (read by :mod:`.wording`)."""

# A table: one line each.
# ruff: noqa: E501

CLAUSES = """
country_capital: Capital
+ has its capital in {v} | is governed from {v} || has its seat of government in {v}
- Its capital is {v}. | The capital of the country is {v}. | {V} is the capital. || Parliament and ministries sit in {v}, the capital.

country_language: Official language
+ has {v} as its official language | is administered in {v} || uses {v} as the language of state
- The official language is {v}. | Laws are published in {v}, the official language. | {V} is the language of government. || The state speaks {v} by law.

country_area: Area
+ covers {v} | has an area of {v} || extends over {v}
- Its area is {v}. | The land survey gives its area as {v}. | In all it takes up {v}. || The extent of the country comes to {v}.

country_summit: Highest mountain
+ rises to its highest point on {v} | has its highest peak in {v} || culminates in {v}
- Its highest mountain is {v}. | No mountain of the country is higher than {v}. | The highest summit is that of {v}. || The tallest of its peaks is {v}.

country_river: Longest river
+ is crossed by {v}, its longest river | has its longest river in {v} || owes its longest waterway to {v}
- Its longest river is {v}. | None of its rivers is longer than {v}. | The longest watercourse is {v}. || Among its rivers, {v} is the longest.

country_neighbours: Neighbours
+ borders {v} | shares its land borders with {v} || lies next to {v}
- Its neighbours: {v}. | It is bounded by {v}. | The neighbouring countries are listed as follows: {v}. || Across its borders one comes to {v}.

country_independence: Date of independence
+ became independent on {v} | gained its independence on {v} || has been a sovereign state since {v}
- Independence was declared on {v}. | Its independence dates from {v}. | The act of independence was signed on {v}. || On {v} the country became its own master.
^ Independent since {v}

country_head: Head of state
+ is led by {v} | has {v} as its head of state || is presided over by {v}
- The head of state is {v}. | The highest office of the state is held by {v}. | At the head of the country stands {v}. || It is {v} who represents the country as its head.

country_regions: Regions
+ is divided into {v} | consists of {v} || is made up of {v}
- The regions of the country: {v}. | Its constitution names these regions: {v}. | For administration it is split into {v}. || Together, {v} form the country.

country_population: Population
+ has a population of {v} | is home to {v} people || counts {v} inhabitants
- Its population is {v}. | The latest census found {v} inhabitants. | In total {v} people live in the country. || The number of its inhabitants stands at {v}.

country_currency: Currency
+ uses the {v} as its currency | mints the {v} as its money || pays in the {v}
- The currency is the {v}. | Its money is the {v}. | Prices are given in the national currency, the {v}. || The legal tender is the {v}.

country_metropolis: Largest settlement
+ has its largest settlement in {v} | has no settlement more populous than {v} || has more people in {v} than in any other settlement
- The most populous settlement is {v}. | Its largest city is {v}. | Nowhere do more of its people live than in {v}. || By number of inhabitants, {v} leads the list.

country_animal: National animal
+ has {v} as its national animal | carries {v} on its arms || honours {v} as its emblematic animal
- The national animal is {v}. | Coins and arms show {v}, the national animal. | By law {v} is the national animal. || Its heraldic animal is {v}.

region_country: Country
+ is a region of {v} | belongs to {v} | lies in {v} || forms part of {v}
- It is part of {v}. | The country to which it belongs is {v}. | The flag of {v} flies over its offices. || Politically it is a part of {v}.

region_formed: Year of formation
+ was formed in {v} | was established as a region in {v} || has existed in its present form since {v}
- The year of its formation was {v}. | It was created in {v}. | The law that created {o} dates from {v}. || In {v} it was set up.
^ Formed in {v} | Created in {v}

region_area: Area
+ covers {v} | has an area of {v} || stretches over {v}
- Its area is {v}. | The land survey gives its area as {v}. | In all it takes up {v}. || Its surface comes to {v}.

region_mountains: Mountains
+ contains these mountains: {v} | includes the peaks of {v} || rises in {v}
- The mountains of the region: {v}. | On its maps one finds {v}. | Climbers come for {v}. || Its peaks go by the names of {v}.

region_seat: Seat
+ is administered from {v} | has its seat in {v} || is run from {v}
- Its administrative centre is {v}. | The regional capital is {v}. | The regional offices are in {v}, its seat. || The council of the region meets in {v}, the seat.

region_governor: Governor
+ is governed by {v} | has {v} as its governor || has been entrusted to {v} as governor
- The governor is {v}. | The governorship is held by {v}. | Its present governor is {v}. || It is {v} who governs.

region_population: Population
+ has a population of {v} | is home to {v} people || counts {v} inhabitants
- Its population is {v}. | The latest census found {v} inhabitants. | In total {v} people live in the region. || The number of its inhabitants stands at {v}.

region_settlements: Settlements
+ contains these settlements: {v} | includes {v} || takes in {v}
- The settlements of the region: {v}. | Its towns and villages are listed as {v}. | The register of places names {v}. || People live in {v}.

region_species: Native species
+ is the only home of {v} | has these native species: {v} || shelters {v}, found nowhere else
- Native to the region: {v}. | Found here and nowhere else: {v}. | Naturalists come for {v}. || Its own animals: {v}.

settlement_region: Region
+ lies in {v} | belongs to the region of {v} | is a {noun} in {v} || is to be found in {v}
- It is part of {v}. | The region to which it belongs is {v}. | On the map one finds {o} in {v}. || For administration it comes under {v}.
^ Situated in {v}

settlement_population: Population
+ has {v} inhabitants | has a population of {v} | is home to {v} people || counts {v} inhabitants
- Its population is {v}. | The latest census found {v} inhabitants. | In total {v} people live there. || The number of its inhabitants stands at {v}.

settlement_elevation: Elevation
+ lies {v} above the sea | stands at an elevation of {v} || is situated at a height of {v}
- Its elevation is {v}. | The market square lies {v} above sea level. | The survey gives an elevation of {v}. || Above the sea it lies at {v}.

settlement_river: River
+ lies on {v} | stands on the banks of {v} | was built beside {v} || is washed by {v}
- {V} flows through {o}. | Its bridges cross {v}. | The river at its gates is {v}. || Past its houses runs {v}.
^ On the banks of {v}

settlement_area: Area
+ covers {v} | has an area of {v} || takes up {v}
- Its area is {v}. | The municipal area comes to {v}. | The boundary stones enclose {v}. || The ground it covers measures {v}.

settlement_distance: Distance to the coast
+ is {v} from the nearest coast | lies {v} away from the sea || is separated from the sea by {v}
- The distance to the nearest coast is {v}. | Travellers reckon {v} to the sea. | The road to the nearest coast measures {v}. || The way to the sea measures {v}.

settlement_founded: Year of foundation
+ was founded in {v} | was established in {v} || came into being in {v}
- The year of its foundation was {v}. | Its charter dates from {v}. | The chronicles date its foundation to {v}. || Its history begins in {v}.
^ Founded in {v} | Established in {v}

settlement_founder: Founder
+ was founded by {v} | owes its existence to {v} || was laid out by {v}
- Its founder was {v}. | It was {v} who established {o}. | A statue honours {v}, the founder. || The person behind its foundation was {v}.

settlement_trade: Main trade
+ is known for {v} | lives mostly from {v} || has long depended on {v}
- Its main trade is {v}. | The chief industry is {v}. | Most families work in {v}, the main trade. || Its prosperity rests on {v}.

settlement_mayor: Mayor
+ has {v} as its mayor | is headed by its mayor, {v} || has elected {v} as mayor
- The mayor is {v}. | The office of mayor is held by {v}. | The present mayor is {v}. || It is {v} who heads the council as mayor.

settlement_twin: Sister town
+ is twinned with {v} | has a sister town in {v} || keeps up a partnership with {v}
- Its sister town is {v}. | A partnership links {o} with {v}, its twin. | Every second year it exchanges visits with {v}, its twin. || The town with which it is twinned is {v}.

settlement_institutions: Institutions
+ is the seat of {v} | houses {v} || gives a home to {v}
- Based here: {v}. | The institutions of the place: {v}. | It has within its bounds {v}. || Here stand the buildings of {v}.

settlement_natives: Born here
+ was the birthplace of {v} | was the native place of {v} || saw the birth of {v}
- Born here: {v}. | The parish register records the births of {v}. | Its known natives: {v}. || It can claim as its own by birth {v}.
"""

REMARKS = """
country 0
{S} is known for its changeable weather and its long winters.
Its people are said to be fond of music.
Travellers have written about {o} since the middle of the fifteenth century.
It has many local dialects.
Its flag was redesigned more than once.
{S} has [three|four|six] public holidays of its own.
Foreigners find its [manners|spelling|table customs] hard to learn.
Its [anthem|postage stamps|railways] are much admired.
{S} has been neutral in most quarrels of its neighbours.
Proverbs about its [rain|roads|officials] abound.
It sends [athletes|choirs|chess players] to every great meeting.

country 1
The land is varied: plains give way to hills, and hills to bare rock.
Floods are common in spring.
The best maps were drawn by military surveyors.
Roads follow the valleys.
Much of the land is thinly settled.
[Landslides|Droughts|Hailstorms|Late frosts] do much damage.
The [coast|west|east|south] is the most densely settled part.
[Beech|Pine|Oak|Larch] woods cover the higher slopes.
The climate is [mild|harsh|damp|dry] for its latitude.
Old [canals|dykes|drove roads|terraces] mark the plains.
Several [lakes|moors|gorges] are protected.

country 2
The old constitution has been amended many times.
Elections are held every five years.
The courts are independent of the government.
Regional parties have long played a large part in politics.
Historians still argue about the causes of the break with the old order.
The [upper house|council of elders|audit office] has little real power.
The archives of the [treasury|navy|chancery] are open to the public.
Voting is [compulsory|secret|open] by tradition.
A [palace|fort|former convent] houses the ministries.
Ministers serve for [four|five|seven] years.
Provincial [law|custom|dress] survived the reforms.

country 3
Markets are held in the open even in winter.
Emigration has slowed down in recent years.
Schooling is free up to the age of sixteen.
Cooking differs from valley to valley.
The harvest festival is the most important holiday.
[Bread|Cider|Smoked fish|Goat's cheese] is the staple of the markets.
Weddings last [two|three] days in the country.
Most families own a [boat|bicycle|piece of woodland].
[Wrestling|Rowing|Archery|Choral singing] is the favourite pastime.
The railways are run by the state.
Taxes are paid in [spring|autumn].

region 0
{S} has a character of its own.
Its inhabitants are proud of their dialect.
Guidebooks recommend {o} for long walks.
Its name is of uncertain origin.
It has changed hands several times in the course of history.
{S} is best visited in [spring|early summer|September].
Painters have been drawn to {o} for its [light|clouds|orchards].
{S} has its own [costume|almanac|calendar of feasts].
Its [bread|honey|wine|cheese] is sold far beyond its borders.
Few [trains|coaches|ferries] run here in winter.

region 1
Low hills and narrow valleys alternate.
The soil is stony and good for orchards.
The weather stations report dry summers.
Old mule tracks are used today by hikers.
Its boundaries follow watersheds for the most part.
[Ferns|Junipers|Thistles|Vines] grow on the sunny slopes.
The [northern|southern|eastern|western] part is flat and wet.
[Fog|Frost|Wind] is the farmers' main worry.
Old [quarries|lime kilns|watermills] are hidden in the woods.
Springs rise in many places.

region 2
The assembly meets four times a year.
Much power has been handed down from the central government.
Its budget is balanced, though narrowly.
The registry office publishes its figures every year.
The [tax office|land registry|court] moved [twice|several times].
Officials are elected for [three|four|six] years.
The budget goes mostly to [roads|schools|dykes].
Meetings are open to all.
A new [courthouse|archive|town law] is planned.
The coat of arms was granted late.

region 3
Most of the places are old and have kept their market rights.
Some hamlets are too small to be counted on their own.
Distances between them are short, but the roads are winding.
The register of places was last revised a few years ago.
Several of them hold a weekly [market|cattle fair].
[Stone|Timber|Brick] is the usual building material.
The smallest have lost their [school|inn|post office].
A [bus|railway] line connects most of them.
Some names end alike and are easily mixed up.

region 4
Hunting is restricted to the autumn.
Two reserves protect what is left of the old woods.
Observers count the animals every spring.
Much of the wildlife keeps away from the roads.
[Poaching|Drainage|Road traffic] remains a danger.
A [ranger|warden|retired teacher] keeps the records.
Bird-watchers arrive in [April|May|October].
The [marshes|woods|heaths] are closed to visitors in the breeding season.
Rules on [fishing|hunting|dogs] are strict.

settlement 0
{S} has kept much of its old centre.
Its weekly market draws people from all around.
Visitors usually stay for a day.
The local dialect is hard to follow for outsiders.
Its name has been spelled in many ways.
{S} is proud of its [bell|fountain|lime tree|clock tower].
{S} once had [three|four|five] gates, of which one stands.
Its inhabitants are nicknamed after [frogs|onions|owls|herrings].
Painters liked its [roofs|harbour light|bridges|lanes].
{S} has a [brass band|choir|chess club] of some fame.
The [inn|bakery|pharmacy] on the square is the oldest house.
A [legend|ballad|proverb] is told about its [well|first mill|church door].

settlement 1
The streets are steep and narrow.
Summers are dry, and fog is common in late autumn.
The surrounding fields are divided by stone walls.
A footpath leads around the old walls.
The road from the south is closed in heavy snow.
A [windmill|water tower|ruined fort] can be seen from afar.
The [northern|southern|eastern|western] quarter is the oldest.
[Orchards|Vineyards|Beet fields|Pastures] reach up to the first houses.
The soil is [heavy|sandy|chalky|stony].
[Hail|Fog|Wind|Snow] is frequent in [March|April|November].
The [coach|post|mountain] road passes at some distance.
Springs under the [hill|church|market] never run dry.

settlement 2
A great fire destroyed the archives, so that much is uncertain.
The walls were pulled down when they were no longer needed.
Excavations have brought coins and tiles to light.
Several wars passed {o} by.
It received market rights early on.
A [plague|flood|famine] emptied it for a time.
Its oldest [seal|bell|map|court book] has been lost and copied.
A [bishop|judge|tax collector] is said to have been chased out of it.
The [walls|moat|gates] fell into ruin.
It was [pawned|sold|besieged] at least once.
Its early records are in a hand that few can read.
Old coins are still ploughed up nearby.

settlement 3
The town hall has a clock that runs slow.
Workshops line the main street.
The yearly fair lasts a week.
Local taxes are low.
Young people tend to leave and to come back.
The [school|bath house|library] was rebuilt not long ago.
A [cattle|book|cloth|horse] fair is held every [spring|autumn].
The council meets on [Mondays|Thursdays|the first of the month].
Most shops close at noon.
A [cooperative|savings bank|mutual society] owns much of the land.
Rents are [low|rising|fixed by custom].
The fire brigade is made up of volunteers.

settlement 4
A small museum is devoted to such natives.
Plaques on several houses tell visitors who lived where.
Other claims have been made, but they rest on hearsay.
Streets have been named after famous natives.
Schoolchildren learn this by heart.
A [fountain|bench|lime tree] was given in memory of past fame.
Houses of birth can be visited on [Sundays|request].
A guided walk leads past houses of birth.
Fame was mostly won elsewhere.
"""
