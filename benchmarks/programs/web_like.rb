# frozen_string_literal: true

require "erb"
require "json"

# What a web application's process does all day, without the web: requests pass through a stack of middleware, a router
# with patterns, filters, an action that merges hashes and sorts records. They come out as a page (ERB, partials,
# escaping) or as JSON. Stacks are 40–60 frames deep. Each kind of record has its own controller and templates, so there
# are thousands of distinct stacks. Garbage piles up and is collected.
#
#   ruby benchmarks/programs/web_like.rb [AMOUNT]     # AMOUNT: requests (default 1000)
module Programs
  class WebLike
    Record = Struct.new(:id, :title, :body, :tags, :price, :parent)

    KINDS = %w[articles products people orders invoices comments pictures places events teams notes reports].freeze
    LAYERS = %w[Host Timing RequestId Logger Locale Session Flash Cookies Csrf Etag Head Params Negotiation Cache
                Rescue Limits].freeze

    class Layer
      def initialize(app) = @app = app
    end
    private_constant :Layer

    # Each layer has methods of its own, as in a real application: sixteen frames of sixteen methods.
    LAYERS.each_with_index do |name, index|
      class_eval <<~RUBY, "layers/#{name.downcase}.rb", 1
        class #{name} < Layer
          def call(request)
            request[:seen] = request[:seen].merge(#{name.downcase}: #{index})
            response = @app.call(request)
            #{"mark(response)" if (index % 4).zero?}
            response
          end

          def mark(response)
            response[:headers] = response[:headers].merge("X-#{name}" => response[:status].to_s)
          end
        end
      RUBY
    end

    class Router
      ROUTES = {
        %r{\A/(?<kind>\w+)\z} => :index,
        %r{\A/(?<kind>\w+)/(?<id>\d+)\z} => :show,
        %r{\A/(?<kind>\w+)/(?<id>\d+)\.json\z} => :show_json,
        %r{\A/(?<kind>\w+)\.json\z} => :index_json,
        %r{\A/(?<kind>\w+)/search/(?<query>[\w+%-]+)\z} => :search
      }.freeze

      def initialize(controllers) = @controllers = controllers

      def call(request)
        ROUTES.each do |pattern, action|
          match = pattern.match(request[:path]) or next
          params = match.named_captures.transform_keys(&:to_sym)
          controller = @controllers[params[:kind]] or break
          return controller.process(action, request.merge(params: params))
        end
        { status: 404, headers: {}, body: "nothing at #{request[:path]}" }
      end
    end
    private_constant :Router

    # Helpers that all templates share.
    class View
      TEMPLATES = {
        "layout(title)" => <<~'HTML',
          <!doctype html><title><%= h title %></title>
          <nav><% 5.times do |i| %><%= link("page #{i}", "/articles/#{i}") %><% end %></nav>
          <main><%= yield %></main>
        HTML
        "list(records)" => <<~'HTML',
          <ul><% each_with_class(records) do |record, css|
          %><li class="<%= css %>"><%= card(record) %></li><% end %></ul>
        HTML
        "card(record)" => <<~'HTML'
          <h2><%= link(record.title, "/articles/#{record.id}") %></h2>
          <p><%= excerpt(record.body) %></p><b><%= money(record.price) %></b><%= tags(record.tags) %>
        HTML
      }.freeze

      # A view with templates of its own, compiled as a template engine compiles them.
      def self.of(kind)
        Class.new(self) do
          TEMPLATES.each do |signature, source|
            ERB.new(source).def_method(self, signature, "views/#{kind}/#{signature[/\w+/]}.erb")
          end
        end
      end

      def page(title, &content) = layout(title) { content.call }
      def h(text) = ERB::Util.html_escape(text)
      def link(text, path) = %(<a href="#{h(path)}" data-slug="#{slug(text)}">#{h(text)}</a>)
      def slug(text) = text.downcase.gsub(/[^a-z0-9]+/, "-").gsub(/\A-|-\z/, "")
      def excerpt(text) = h(text.scan(/\w+/).first(12).map(&:capitalize).join(" "))
      def money(cents) = format("%d.%02d", cents / 100, cents % 100).gsub(/(\d)(?=(\d{3})+\.)/, '\1,')
      def tags(names) = names.sort_by(&:size).map { |name| %(<i>#{h(name)}</i>) }.join(", ")

      def each_with_class(records)
        records.each_with_index { |record, i| yield record, i.even? ? "even" : "odd" }
      end
    end
    private_constant :View

    # Nested data to plain data, by kind of value.
    module Serializer
      module_function

      def dump(value)
        case value
        when Hash then value.to_h { |key, inner| [key.to_s, dump(inner)] }
        when Array then value.map { |inner| dump(inner) }
        when Record then dump(value.to_h.compact)
        else value
        end
      end
    end
    private_constant :Serializer

    # Filters around every action.
    class Controller
      class Refused < StandardError; end

      def initialize(kind, store)
        @kind = kind
        @store = store
        @view = View.of(kind).new
      end

      def process(action, request)
        with_filters(%i[load_user check_rate set_locale measure], request) { public_send(action, request[:params]) }
      rescue Refused => e
        { status: 429, headers: {}, body: e.message }
      end

      private

      def with_filters(names, request, &action)
        return action.call if names.empty?

        send(names.first, request) { with_filters(names.drop(1), request, &action) }
      end

      def load_user(request)
        request[:user] = { id: request[:id] % 50, roles: %w[reader writer].first(1 + (request[:id] % 2)) }
        yield
      end

      def check_rate(request)
        raise Refused, "too many requests from #{request[:user][:id]}" if request[:id] % 97 == 96

        yield
      end

      def set_locale(request) = yield.then { |response| response.merge(locale: request[:path].size.odd? ? "en" : "de") }

      def measure(_request)
        response = yield
        response.merge(headers: response[:headers].merge("Content-Length" => response[:body].bytesize.to_s))
      end

      def find
        @store.select { |record| record.tags.include?(@kind) }.sort_by { |record| [-record.price, record.title] }
      end

      def one(params) = @store[params[:id].to_i % @store.size]
      def html(title, &content)
        { status: 200, headers: { "Content-Type" => "text/html" }, body: @view.page(title, &content) }
      end

      def json(value)
        { status: 200, headers: { "Content-Type" => "application/json" }, body: JSON.generate(Serializer.dump(value)) }
      end
    end
    private_constant :Controller

    KINDS.each do |kind|
      class_eval <<~RUBY, "controllers/#{kind}_controller.rb", 1
        class #{kind.capitalize}Controller < Controller
          def index(_params) = html("all #{kind}") { @view.list(find.first(8)) }
          def show(params) = html("one of #{kind}") { @view.card(one(params)) }
          def show_json(params) = json(one(params))
          def index_json(_params) = json(items: find.first(5), meta: { kind: "#{kind}", filters: %w[a b] })

          def search(params)
            pattern = Regexp.union(params[:query].split("+"))
            html("search #{kind}") do
              @view.list(@store.select { |record| record.body.match?(pattern) }.max_by(6, &:price))
            end
          end
        end
      RUBY
    end

    WORDS = %w[ruby profile stack frame sample weight thread marking sweeping interval clock report tree leaf].freeze
    KEPT_PAGES = 200
    private_constant :WORDS, :KEPT_PAGES

    def initialize
      store = build_store(Random.new(1))
      controllers = KINDS.to_h { |kind| [kind, self.class.const_get("#{kind.capitalize}Controller").new(kind, store)] }
      @app = LAYERS.reverse.reduce(Router.new(controllers)) { |app, name| self.class.const_get(name).new(app) }
      @pages = []
    end

    # Returns the bytes of all bodies, which is the same for the same amount.
    #: (Integer) -> Integer
    def run(amount)
      bytes = 0
      amount.times { |i| bytes += serve(i) }
      bytes
    end

    private

    def serve(id)
      response = @app.call({ id: id, path: path_for(id), seen: {} })
      # Pages live a while, so that the collector has old objects to walk.
      @pages[id % KEPT_PAGES] = response
      response[:body].bytesize
    end

    def path_for(id)
      kind = KINDS[id % KINDS.size]
      case id % 7
      when 0, 1 then "/#{kind}"
      when 2, 3 then "/#{kind}/#{id}"
      when 4 then "/#{kind}/#{id}.json"
      when 5 then "/#{kind}.json"
      else "/#{kind}/search/#{WORDS[id % WORDS.size]}+#{WORDS[id % 5]}"
      end
    end

    def build_store(random)
      Array.new(120) do |id|
        words = Array.new(40) { WORDS.sample(random: random) }
        tags = WORDS.sample(3, random: random) + [KINDS[id % KINDS.size]]
        Record.new(id, words.first(4).join(" ").capitalize, words.join(" "), tags,
                   random.rand(100..9_999_999), nil)
      end
    end
  end
end

puts Programs::WebLike.new.run(Integer(ARGV.fetch(0, "1000"))) if $PROGRAM_NAME == __FILE__
