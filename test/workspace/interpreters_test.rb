# frozen_string_literal: true

require_relative "../test_helper"
require_relative "scratch_repository"

# The Ruby of a side, and the programs that a side's command finds.
class WorkspaceInterpretersTest < Minitest::Test
  include ScratchRepository

  # A fake of Ruby's source. It installs a script that runs this Ruby.
  CONFIGURE = <<~'SH'
    #!/bin/sh
    for word; do case $word in --prefix=*) prefix=${word#--prefix=};; --fail) echo "no compiler"; exit 1;; esac; done
    { echo "PREFIX = $prefix"; cat rules; } > Makefile
    echo "$*" > arguments
  SH
  RULES = "all:\n\techo made > built\ninstall:\n\tmkdir -p $(DESTDIR)$(PREFIX)/bin\n\tcp wrapper " \
          "$(DESTDIR)$(PREFIX)/bin/ruby\n\tcp arguments built $(DESTDIR)$(PREFIX)/\n"
  WRAPPER = "#!/bin/sh\nBUILT=%d exec #{ScratchRepository::RUBY} \"$@\"\n"

  def script(text)
    write({ "bench.rb" => text }, dir: @root)
    File.join(@root, "bench.rb")
  end

  # A script with another name that runs this Ruby with OTHER=yes.
  def other_ruby(name = "ruby-other")
    write({ "bin/#{name}" => "#!/bin/sh\nOTHER=yes exec #{RUBY} \"$@\"\n" }, dir: @root)
    File.chmod(0o755, File.join(@root, "bin", name))
    File.join(@root, "bin", name)
  end

  def path_with_bin = clean_environment.merge("PATH" => "#{@root}/bin:#{ENV.fetch("PATH")}")

  def test_paths_names_and_flags
    other = other_ruby
    sides = [side, side(ruby: [other, "-W0"]), side(ruby: ["ruby-other"]), side(ruby: ["../bin/ruby-other", "-rset"])]
    subjects(*sides, environment: path_with_bin, script: script("p ENV['OTHER'], $VERBOSE")) do |list|
      assert_equal ["nil\nfalse\n", "\"yes\"\nnil\n", "\"yes\"\nfalse\n", "\"yes\"\nfalse\n"],
                   list.map { |each| run_subject(each) }
      assert_equal [[RUBY], [other, "-W0"], [other], [other, "-rset"]], list.map(&:ruby)
      assert_equal [@repo], list.map(&:dir).uniq
      assert_equal [{}], list.map(&:env).uniq
      assert_equal [RUBY_DESCRIPTION.sub(" +YJIT", "")], list.map { |each| each.facts["ruby"] }.uniq
      assert_equal "-W0", list[1].facts["flags"]
    end
  end

  def test_what_isnt_a_ruby
    { ["no-such-ruby"] => "cannot run no-such-ruby: there is none in PATH",
      ["/no/such/ruby"] => "cannot run /no/such/ruby: No such file or directory",
      [RUBY, "--no-such-flag"] => "invalid option --no-such-flag",
      ["/bin/true"] => "cannot run /bin/true: it isn't Ruby", [@root] => "Permission denied" }.each do |words, message|
      assert_includes failure(Pitwall::UsageError, side(ruby: words)), message
    end
  end

  def test_code_stubs_and_variables
    subjects(side(code: "p 1"), side(code: "p 2", stub: "A#b", env: { "X" => "1", "RUBYOPT" => "-W1" })) do |list|
      assert_equal [["p 1", nil, {}], ["p 2", "A#b", { "X" => "1", "RUBYOPT" => "-W1" }]],
                   list.map { |each| [each.code, each.stub, each.env] }
      assert_equal [nil, nil], list.map(&:script)
      assert_equal "X=1 RUBYOPT=-W1", list.last.facts["env"]
    end
  end

  def test_a_command_finds_the_sides_ruby
    other = other_ruby
    write({ "bin/tool" => "#!/usr/bin/env ruby\np ENV['OTHER'], $VERBOSE\n" }, dir: @root)
    File.chmod(0o755, File.join(@root, "bin/tool"))
    tool = { environment: path_with_bin, command: [File.join(@root, "bin/tool")] }
    subjects(side, side(ruby: [other]), side(ruby: [other, "-W0"]), **tool) do |list|
      assert_equal ["nil\nfalse\n", "\"yes\"\nfalse\n", "\"yes\"\nnil\n"], list.map { |each| run_command(each) }
      assert_equal other, File.readlink(File.join(list[2].env["PATH"].split(":").first, "ruby"))
      assert_equal [tool[:command], nil, []], [list[2].command, list[2].script, list[2].requires]
    end
    # Flags that RUBYOPT doesn't take: all sides then start by a script.
    subjects(side, side(ruby: [other, "-W0", "-e", "p 7"]), **tool) do |list|
      assert_equal %W[nil\nfalse\n 7\n], list.map { |each| run_command(each) }
      commands = list.map { |each| File.join(each.env["PATH"].split(":").first, "ruby") }
      assert_equal [false, false], (commands.map { |path| File.symlink?(path) })
    end
    write({ "patch.rb" => "$VERBOSE = true" }, dir: @root)
    subjects(side(patches: [File.join(@root, "patch.rb")]), **tool) do |list|
      assert_equal "nil\ntrue\n", run_command(list.first)
    end
  end

  def test_a_command_in_a_clone_asks_for_the_bundle_itself
    commit("Gemfile" => "")
    loaded = [RUBY, "-e", "p defined?(Bundler).nil?, Dir.pwd"]
    subject(side(rev: "HEAD"), command: loaded) { |one| assert_equal "true\n#{one.dir.inspect}\n", run_command(one) }
    subject(side(rev: "HEAD"), command: [RUBY, "-rbundler/setup", "-e", "p Bundler.default_gemfile.to_s"]) do |one|
      assert_equal "#{File.join(one.dir, "Gemfile").inspect}\n", run_command(one)
    end
    subject(side(rev: "HEAD"), command: loaded,
            environment: clean_environment.merge("RUBYOPT" => "-rbundler/setup")) do |one|
      assert_includes run_command(one), "false"
    end
  end

  def test_an_interpreter_built_from_two_revisions
    source = File.join(@root, "source")
    Dir.mkdir(source)
    git("init", "--quiet", "--initial-branch=main", dir: source)
    write({ "autogen.sh" => "#!/bin/sh\ncp configure.ac configure && chmod +x configure\n", "configure.ac" => CONFIGURE,
            "rules" => RULES, "wrapper" => format(WRAPPER, 1) }, dir: source)
    %w[autogen.sh wrapper].each { |name| File.chmod(0o755, File.join(source, name)) }
    commit(dir: source)
    commit({ "wrapper" => format(WRAPPER, 2) }, dir: source)
    before = fingerprint(source)
    sides = [side(ruby_source: [source, "HEAD~1"]), side(ruby_source: ["../source", "main"])]
    subjects(*sides, script: script("p ENV['BUILT']"), configure: ["--with-x"]) do |list|
      assert_equal ["\"1\"\n", "\"2\"\n"], list.map { |each| run_subject(each) }
      assert_equal 1, list.map { |each| each.ruby.first.size }.uniq.size
      prefix = File.dirname(list.first.ruby.first, 2)
      assert_equal ["--prefix=#{prefix} --disable-install-doc --with-x\n", "made\n"],
                   %w[arguments built].map { |name| File.read(File.join(prefix, name)) }
      assert_equal "#{source}@HEAD~1", list.first.facts["ruby_source"]
    end
    assert_empty before.difference(fingerprint(source))
    @steps.clear
    subjects(*sides, configure: ["--with-x"]) { nil }
    assert_empty @steps
    assert_match(/\Asource@main: configure failed: no compiler \(log: .*\)\z/,
                 failure(Pitwall::Workspace::BuildFailed, sides.last, configure: ["--fail"]))
    assert_includes failure(Pitwall::UsageError, side(ruby_source: [source, "nope"])), "no such revision"
    commit("a" => "1")
    assert_includes failure(Pitwall::Workspace::BuildFailed, side(ruby_source: [@repo, "main"])),
                    "there is no configure in it"
    assert_equal 2, entries("rubies").size
  end
end
