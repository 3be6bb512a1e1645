# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/recording_builder"
require_relative "../support/drawn_view"
require "json"
require "pitwall/cli"

# The command around a program whose objects are known.
class AllocationsCommandTest < Minitest::Test
  include CommandLine

  PROGRAM = <<~RUBY
    class Task; def initialize = @list = []; end
    def job = 1000.times { Task.new }
    def keep = $kept = Array.new(50) { |i| "kept \#{i}" }
    job
    keep
    puts "done"
    exit Integer(ARGV.first || 0)
  RUBY

  def allocations(*options, status: 0)
    File.write(file("program.rb"), PROGRAM)
    pitwall("allocations", *options, "--", RUBY, "--disable-gems", "program.rb", status.to_s)
  end

  def json(...)
    allocations("--format", "json", "--out", "report.json", ...)
    JSON.parse(File.read(file("report.json")))
  end

  def report(*options) = pitwall("report", *options, recordings.first)

  def test_text
    result = allocations
    assert_equal "done\n", result.out
    assert result.status.success?
    assert_match(/1,000 +\d+\.\d% .* Task +program\.rb:2$/, result.err)
    assert_match(/1,000 +\d+\.\d% .* Array +program\.rb:1$/, result.err)
    assert_match(/GC charged is a model/, result.err)
    assert_match(/\d+ retained, [\d.]+ KiB · \d+ more by the VM for itself/, result.err)
  end

  def test_json
    object = json
    assert_equal "pitwall/allocations-1", object["schema"]
    site = object["sites"].find { |found| found["class"] == "Task" }
    assert_equal [1000, 2, "T_OBJECT"], site.values_at("count", "line", "type") + [] if site["type"]
    assert_equal 1000, site["count"]
    keys = %w[path line type class method count old total_age min_age max_age bytes retained gc_ns]
    keys.each { |name| assert site.key?(name), name }
    assert_equal object["allocated"], object["objects"] + object["vm_internal"] + object["pitwall"]
    assert_in_delta object["gc_ns"], object["sites"].sum { |found| found["gc_ns"] }, (object["gc_ns"] * 0.01) + 1
    assert_match(/model/, object["model"]["gc_ns"])
  end

  def test_by_sort_limit_retained
    rows = json("--by", "class", "--sort", "bytes", "--limit", "3")["sites"]
    assert_equal 3, rows.size
    assert_equal [nil], rows.map { |row| row["line"] }.uniq
    rows = json("--by", "path,line,class,type,method", "--retained")["sites"]
    kept = rows.find { |row| row["line"] == 3 && row["class"] == "String" }
    assert_equal ["T_STRING", "block in Object#keep"], kept.values_at("type", "method")
    assert_includes 50..100, kept["retained"]
  end

  # What fills the memory comes first, not what was allocated most often.
  def test_retained_is_by_bytes
    built = RecordingBuilder.build(mode: "none") do |segment|
      segment.site(1, type: 0, class_name: "", counters: [90, 0, 80, 0, 0, 0, 3600, 3600, 10, 0, 99_000])
      segment.site(5, stack: [["Parser#token", "/srv/parser.rb", 1, 3]],
                      counters: [9000, 0, 8960, 0, 0, 0, 360_000, 900_000, 40, 0, 1600])
      segment.site(6, stack: [["Cache#store", "/srv/cache.rb", 1, 7]],
                      counters: [3, 0, 1, 0, 0, 0, 120, 300_000, 2, 0, 200_000])
      segment.site(7, stack: [["Parser#done", "/srv/parser.rb", 9, 9]],
                      counters: [70, 0, 70, 0, 0, 0, 2800, 2800, 0, 0, 0])
    end
    File.binwrite(file("retained.pit"), built)
    shown = lambda do |*options|
      result = pitwall("report", "retained.pit", *options)
      [result.status.exitstatus, result.out.force_encoding(Encoding::UTF_8)]
    end
    sites_of = ->(*options) { JSON.parse(shown.call(*options, "--format", "json").last)["sites"] }
    status, text = shown.call("--retained")
    assert_equal 0, status, text
    assert_match(/ · 42 retained, 197 KiB · /, text)
    assert_match(/^retained bytes +retained +objects .*class$/, text)
    assert_match(/195 KiB +99\.2% +2 +3 .*cache.rb:7\n +1\.56 KiB +0\.8% +40 +9,000 .*parser.rb:3\n/, text)
    assert_match(/parser.rb:3\n +96\.7 KiB +10 +90 .*\(VM internal\)/, text)
    refute_includes text, "parser.rb:9"
    assert_match(/^0\.8% in 2 more rows/, shown.call("--retained", "--limit", "1").last)
    sites = sites_of.call("--retained")
    assert_equal [[7, 200_000], [3, 1600]], sites.first(2).map { |site| site.values_at("line", "retained_bytes") }
    assert_equal [3, 7], sites_of.call("--retained", "--sort", "objects").first(2).map { |site| site["line"] }
    markdown = shown.call("--view", "allocations", "--sort", "retained_bytes", "--format", "markdown").last
    assert_match(/\| 3 \| 0 \| 2 \| 195 KiB \|/, markdown)
    status, text = shown.call("--view", "allocations")
    assert_equal [0, "9,000"], [status, text.lines.grep(%r{/srv/}).first.split.first]
  end

  # Recordings of older versions have the number of what was retained alone.
  def test_retained_without_its_bytes
    built = RecordingBuilder.build(mode: "none") do |segment|
      segment.site(5, stack: [["A#a", "/srv/a.rb", 1, 3]], counters: [9, 0, 5, 0, 0, 0, 360, 360, 4, 0])
    end
    File.binwrite(file("old.pit"), built)
    assert_match(/^ +9 +100% +0 +4 /, pitwall("report", "old.pit", "--retained").out)
    refused = pitwall("report", "old.pit", "--view", "allocations", "--sort", "retained_bytes")
    assert_match(/\Apitwall: --sort retained_bytes: not known: the recording is of an older version/, refused.err)
  end

  def test_stacks
    object = json("--stacks")
    task = object["sites"].select { |row| row["class"] == "Task" }
    assert_match(/Object#job/, task.first["stack"].join("\n"))
    tree = report("--tree", "--weight", "objects")
    assert tree.status.success?, tree.err
    assert_match(/Object#job/, tree.out)
    flat = report("--weight", "bytes")
    assert_match(/Task#initialize/, flat.out)
    methods = JSON.parse(report("--weight", "objects", "--format", "json").out)["methods"]
    method = methods.find { |row| row["name"] == "Task#initialize" }
    assert_equal [1000, 1000], method.values_at("self", "objects")
    assert_operator method["bytes"], :>=, 40_000
    collapsed = pitwall("export", recordings.first, "--to", "collapsed", "--weight", "objects", "--out", "-")
    assert_match(/Object#job.*Task#initialize 1000$/, collapsed.out)
    refused = pitwall("export", recordings.first, "--to", "speedscope", "--weight", "objects", "--out", "-")
    assert_equal 2, refused.status.exitstatus
    assert_match(/--to collapsed/, refused.err)
  end

  def test_the_same_view_of_the_recording
    allocations("--quiet")
    result = report("--view", "allocations", "--sort", "old", "--by", "class,line")
    assert_match(/Task/, result.out)
    assert_equal "pitwall/allocations-1", JSON.parse(report("--view", "allocations", "--format", "json").out)["schema"]
    assert_match(/GC charged/, report.out) # there is nothing else in it
    markdown = report("--view", "allocations", "--format", "markdown").out
    assert_match(/^\| 1,000 \|.*`Task` `program\.rb:2` \|$/, markdown)
    audit = report("--audit").out
    assert_match(/names of allocated classes/, audit)
    assert report("--redact", "--view", "allocations").status.success?
  end

  def test_equal_strings
    found = json("--strings")["strings"]
    assert_kind_of Array, found
    assert_match(/equal strings of/, allocations("--strings").err)
  end

  def test_a_budget
    assert_equal 0, allocations("--fail-if", "objects > 1M").status.exitstatus
    result = allocations("--fail-if", "objects > 1500")
    assert_equal 1, result.status.exitstatus
    assert_match(/^pitwall: --fail-if objects > 1500: objects is 2,\d\d\d, limit 1500$/, result.err)
    assert_match(/bytes is \d{2,3},\d{3} B, limit 1kB$/, allocations("--quiet", "--fail-if", "bytes > 1kB").err)
    assert_equal 0, allocations("--quiet", "--fail-if", "retained > 2k or old > 1M or bytes > 1GiB").status.exitstatus
    assert_equal 1, allocations("--quiet", "--fail-if", "retained > 10").status.exitstatus
    assert_equal 7, allocations("--quiet", "--fail-if", "retained > 10", status: 7).status.exitstatus
  end

  # A limit that nobody could hold against anything has not been kept.
  def test_a_budget_of_nothing
    result = pitwall("allocations", "--fail-if", "objects > 10", "--", "sleep", "0.01")
    assert_one_line 4, /\Apitwall: nothing was recorded: no Ruby /, result
    assert_equal 1, pitwall("allocations", "--fail-if", "objects > 10", "--", "false").status.exitstatus
  end

  # An empty program is what loading a script takes.
  def test_nothing_of_our_own
    File.write(file("empty.rb"), "nil\n")
    pitwall("allocations", "--quiet", "--", RUBY, "--disable-gems", "empty.rb")
    object = JSON.parse(report("--view", "allocations", "--format", "json").out)
    assert_operator object["objects"], :<, 40
    assert_empty(object["sites"].map { |site| site["path"] }.grep(%r{lib/pitwall}))
  end

  def test_usage
    {
      %w[--by colour] => /--by colour: it takes/, %w[--sort size] => /--sort size: it takes/,
      %w[--sample 5] => %r{--sample 5: write 1/N}, %w[--fail-if slower] => /nothing to compare/,
      ["--fail-if", "speed > 1"] => /no metric speed; there are objects, bytes, retained, old, gc_time$/,
      ["--fail-if", "objects > 2%"] => /nothing to compare/, ["--fail-if", "fast"] => /METRIC one of objects, bytes/,
      ["--fail-if", "retained > 2ms"] => /retained takes k M, not ms/, %w[--limit 0] => /--limit 0/
    }.each do |options, message|
      result = allocations(*options)
      assert_equal 2, result.status.exitstatus, options.inspect
      assert_match message, result.err
    end
    result = pitwall("profile", "--quiet", "--", RUBY, "-e", "sleep 0.01")
    assert result.status.success?
    refused = report("--view", "allocations")
    assert_equal 2, refused.status.exitstatus
    assert_match(/holds no allocations/, refused.err)
  end

  def test_in_a_profile
    File.write(file("program.rb"), "limit = Time.now + 0.7\n+'x' while Time.now < limit")
    result = pitwall("profile", "--allocations", "1/5", "--", RUBY, "program.rb")
    assert result.status.success?
    assert_match(/samples every 1 ms/, result.err)
    view = report("--view", "allocations").out
    assert_match(/followed, in [\d,]+ bursts?: counts are estimates/, view)
    assert_match(/String +program.rb:2/, view)
  end

  RUBY_FRAME = ["A#a", "/app/a.rb", 1, 3].freeze
  BURSTS = 4

  # A recording of one site, in bursts unless asked otherwise.
  def built(count, allocated, flags: BURSTS, **head)
    File.binwrite(file("built.pit"), RecordingBuilder.build(**head) do |segment|
      segment.site(5, stack: [RUBY_FRAME], counters: [count, 0, 0, 0, 0, 0, count * 40, count * 40, 0, 0])
      segment.allocation_totals(allocated: allocated, flags: flags)
    end)
  end

  def of_built(*options)
    result = pitwall("report", "built.pit", "--view", "allocations", *options)
    result.out.force_encoding(Encoding::UTF_8)
    result
  end

  # No more figures than what was looked at allows, and nothing of what happened between.
  def test_bursts_say_how_sure_they_are
    {
      50 => ["~10,000", true], 500 => ["~12,000", true], 5000 => ["~12,000", false], 50_000 => ["~123,000", false]
    }.each do |count, (shown, warned)|
      built(count, count == 50_000 ? 123_456 : 12_345)
      text = of_built.out
      assert_match(/^#{shown} objects, ~/, text)
      assert_match(/^#{shown.rjust(7)} +100% /, text)
      warning = "! only #{count} objects were looked at: places may be missing; pitwall allocations counts all"
      assert_equal warned, text.include?(warning), text
      refute_match(/ retained ·/, text)
    end
    %w[old retained age freed max_age].each do |counter|
      assert_match(/--sort \w+: not known in bursts/, of_built("--sort", counter).err)
    end
    assert_match(/\Apitwall: --retained: not known in bursts/, of_built("--retained").err)
    object = JSON.parse(of_built("--format", "json").out)
    assert_equal [nil, nil, nil, 50_000], object.values_at("old", "freed", "retained", "looked_at")
    site = object["sites"].first
    assert_equal [nil] * 6, site.values_at("old", "freed", "retained", "total_age", "min_age", "max_age")
    assert_match(/retained: not known$.*^\| ~123,000 \| not known \| not known \| not known \|/m,
                 of_built("--format", "markdown").out)
  end

  # Nobody was there to look.
  def test_what_a_killed_process_retained_is_not_known
    built(50, 0, flags: 0, stop: false)
    text = of_built.out
    refute_match(/\d retained/, text)
    refute_match(/for\s+the\s+count\s+of\s+what/, text)
    assert_match(/^ +50 +100% +0 +0 B|^ +50 +100% +0  +/, text)
    assert_match(/what was retained, and its bytes, is unknown/, text)
    assert_match(/--retained: not known: the process was killed/, of_built("--retained").err)
    object = JSON.parse(of_built("--format", "json").out)
    assert_equal [nil, nil, 0], [object["retained"], object["sites"].first["retained"], object["old"]]
  end

  # Where the numbers leave the innermost frame too little room, it stands below them like the others.
  def test_the_innermost_frame_can_be_read
    name = "#{"Very::" * 6}Deep.build_all_of_them"
    File.binwrite(file("built.pit"), RecordingBuilder.build do |segment|
      stack = [["main", "/app/a.rb", 1, 3], ["#{"Long" * 30}#outer", "/app/a.rb", 4, 5],
               [name, "/app/my app/b.rb", 6, 7]]
      segment.site(5, stack: stack, counters: [9, 0, 0, 0, 0, 0, 360, 360, 0, 0])
      segment.allocation_totals(allocated: 9)
    end)
    lines = of_built("--by", "stack").out.lines(chomp: true)
    assert_includes lines, "    #{name} /app/my app/b.rb:7"
    assert_match(/\A    Long.*….*Long#outer \/app\/a\.rb:5\z/, lines.grep(/outer/).fetch(0))
    assert_operator lines.map(&:size).max, :<=, 100
    assert_equal 1, of_built("--by", "stack,class").out.scan("Very::Deep.build_all_of_them").size
  end

  def test_no_line_is_wider_than_asked_for
    built(2_700_000, 2_700_000, flags: 0)
    require "pitwall/cli/verbs/report"
    [60, 72, 80, 100].each do |width|
      %i[count retained].each do |sort|
        segments = Pitwall::Record.read(file("built.pit")).segments
        lines = DrawnView.of_segments(segments, :allocations, sort: sort, width: width).lines(chomp: true)
        assert_operator lines.reject { |line| line.include?("pitwall report") }.map(&:size).max, :<=, width
        assert_match(/A +a\.rb|a\.rb:/, lines.grep(/2,700,000 .*100%/).fetch(0))
        heads = lines.grep(/^ *objects .* bytes /).fetch(0)
        assert_includes heads, "retained" if sort == :retained || width == 100
        refute_match(/ (age|old) /, heads) if width == 60
      end
    end
  end

  def test_names_have_the_room_they_need
    text = allocations("--stacks").err
    assert_match(/Array Task#initialize program\.rb:1$/, text)
    assert_match(/--to collapsed --weight objects --out/, text)
    FileUtils.rm_rf(file(".pitwall"))
    allocations("--quiet")
    by_stack = report("--view", "allocations", "--by", "stack").out
    assert_match(/! without stacks, what a line's callees allocate/, by_stack)
    assert_match(/^ +1,0\d\d .*  program\.rb:1$/, report("--view", "allocations", "--by", "line").out)
    assert_match(/^ +\d\S* \S+ +\d\S* \S+ +1,00\d /, report("--view", "gc-cost").out)
    weighed = report("--weight", "objects").out
    refute_match(/thread/, weighed)
    assert_match(/--tree --weight objects$/, weighed)
    refused = pitwall("export", recordings.first, "--to", "speedscope", "--out", "x.json")
    assert_equal [2, false], [refused.status.exitstatus, File.exist?(file("x.json"))]
    assert_match(/--to collapsed --weight objects/, refused.err)
  end

  # What a pitwall leaves that was killed.
  def test_parts_that_were_never_joined
    Dir.mkdir(file("x.parts"))
    assert_match(/x\.parts: holds no recordings$/, pitwall("report", "x.parts").err.lines.first)
    built(50, 50, flags: 0)
    File.rename(file("built.pit"), file("x.parts/7-0.pit"))
    built(20, 20, flags: 0)
    File.rename(file("built.pit"), file("x.parts/8-0.pit"))
    File.write(file("x.parts/9-0.pit"), "")
    File.write(file("x.parts/messages"), "")
    %w[x.parts x.parts/].each do |folder|
      assert_match(/^70 objects/, pitwall("report", folder, "--view", "allocations").out)
    end
    missing = pitwall("report", "x.pit")
    assert_equal 2, missing.status.exitstatus
    assert_match(/\Apitwall: x\.pit: no such file, but its parts are there: pitwall report x\.parts$/, missing.err)
  end

  def test_forked_children_are_counted
    File.write(file("forks.rb"), "fork { 500.times { Object.new } }; Process.wait; 100.times { Object.new }")
    pitwall("allocations", "--quiet", "--", RUBY, "forks.rb")
    rows = JSON.parse(report("--view", "allocations", "--format", "json").out)["sites"]
    count = rows.find { |row| row["class"] == "Object" && row["path"].end_with?("forks.rb") }["count"]
    assert_includes 560..600, count # a child begins at its first safepoint
  end
end
