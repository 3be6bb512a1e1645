class OrdersController < ApplicationController
  def create
    @product = Product.find(params.require(:order)[:product_id])
    @order = Order.new(params.require(:order).permit(:customer, :email))
    @order.line_items.build(product: @product, quantity: params[:order][:quantity])
    saved = @order.save

    respond_to do |format|
      format.html do
        saved ? redirect_to(@order, notice: "Thank you.") : render("products/show", status: 422)
      end
      format.json do
        saved ? render(json: { id: @order.id, total_cents: @order.total_cents }, status: 201)
              : render(json: { errors: @order.errors.full_messages }, status: 422)
      end
    end
  end

  def show
    @order = Order.includes(line_items: :product).find(params[:id])
  end
end
